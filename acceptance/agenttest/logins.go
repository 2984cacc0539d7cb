package agenttest

import (
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// LoginOf is one login of a database, as the commands on it name it.
type LoginOf struct {
	Wanted
	Username string
	Setup    string // operation of its making
	Profile  role.AccessProfile
	Limit    int
	Password string
	Verifier string
	Until    *time.Time
}

func newPassword() (password, verifier string) {
	var salt [16]byte
	_, _ = rand.Read(salt[:])
	password = rand.Text()
	return password, credential.Verifier(password, salt, credential.Iterations)
}

// Additional is an additional role that a test wants made.
func (w Wanted) Additional(ordinal int, profile role.AccessProfile) LoginOf {
	username := role.ModelOf(w.Model).Username(w.DatabaseID(), ordinal)
	l := LoginOf{Wanted: w, Username: username, Setup: NewUUID(), Profile: profile, Limit: 3}
	l.Password, l.Verifier = newPassword()
	return l
}

// Present is a login that came with the database.
func (w Wanted) Present(l database.Login) LoginOf {
	name, password := w.Login(l)
	return LoginOf{Wanted: w, Username: name, Password: password, Verifier: w.Verifiers[l]}
}

// Renewed is the login with another password.
func (l LoginOf) Renewed() LoginOf {
	l.Password, l.Verifier = newPassword()
	return l
}

// Prepare makes the role, which may not log in.
func (l LoginOf) Prepare(generation int64) protocol.Command {
	return Told(l.Setup, 0, command.PrepareRole{
		DatabaseID: l.DatabaseID(), Username: l.Username, Generation: generation, AccessProfile: l.Profile, ConnectionLimit: l.Limit,
	})
}

// Open lets it log in.
func (l LoginOf) Open(generation int64) protocol.Command {
	return Told(l.Setup, 0, command.AdmitRole{
		DatabaseID: l.DatabaseID(), Username: l.Username, Generation: generation, AccessProfile: l.Profile, ConnectionLimit: l.Limit,
		Verifier: l.Verifier, ValidUntil: l.Until, Password: l.Password,
	})
}

// Rotate changes the password to that of next.
func (l LoginOf) Rotate(generation int64, next LoginOf) protocol.Command {
	return Told(NewUUID(), 0, command.ChangeLogin{
		DatabaseID: l.DatabaseID(), Username: l.Username, Generation: generation, Want: role.Rotation,
		Verifier: next.Verifier, ValidUntil: next.Until, CredentialGeneration: generation,
		NewPassword: next.Password, OldPassword: l.Password,
	})
}

// Shut revokes its password, or has it expired.
func (l LoginOf) Shut(want role.Kind, generation int64) protocol.Command {
	return Told(NewUUID(), 0, command.ChangeLogin{
		DatabaseID: l.DatabaseID(), Username: l.Username, Generation: generation, Want: want, OldPassword: l.Password,
	})
}

// Remove removes the role. Dependencies in the databases of its account count.
func (l LoginOf) Remove(generation int64, account ...string) protocol.Command {
	c := command.RemoveRole{DatabaseID: l.DatabaseID(), Username: l.Username, Generation: generation}
	for _, db := range account {
		c.AccountDatabases = append(c.AccountDatabases, id.DatabaseID(db))
	}
	return Told(NewUUID(), 0, c)
}

// OptIn makes the overlay of a database with a single login.
func (w Wanted) OptIn() protocol.Command {
	return Told(NewUUID(), 0, command.EnsureOverlay{DatabaseID: w.DatabaseID()})
}

// Opened makes an additional role that may log in.
func (s *Stack) Opened(t testing.TB, l LoginOf) LoginOf {
	t.Helper()
	s.Done(t, l.Prepare(1))
	s.Connect(t, l)
	s.Done(t, l.Open(1))
	return l
}

// RoleStack is DatabaseStack with an additional role that may log in.
func RoleStack(t testing.TB, profile role.AccessProfile) (*Stack, Wanted, LoginOf) {
	t.Helper()
	return RoleStackOf(t, database.Managed, profile)
}

// WaysOf opens a login's connections: through both entries of the pooler, and to PostgreSQL itself.
func (s *Stack) WaysOf(t testing.TB, l LoginOf) map[string]*sql.DB {
	t.Helper()
	return map[string]*sql.DB{
		"session": s.Pooled(t, l.Name, l.Username, l.Password), "direct": s.Direct(t, l.Name, l.Username, l.Password),
		"transaction": s.Pooled(t, l.Name+".transaction", l.Username, l.Password),
	}
}

// GetsIn demands that a login gets in by every way.
func (s *Stack) GetsIn(t testing.TB, what string, l LoginOf) {
	t.Helper()
	for way, db := range s.WaysOf(t, l) {
		Works(t, what+" "+way, db)
		_ = db.Close()
	}
}

// GetsInNowhere demands that a login is refused by every way.
func (s *Stack) GetsInNowhere(t testing.TB, what string, l LoginOf) {
	t.Helper()
	for way, db := range s.WaysOf(t, l) {
		Refused(t, what+" "+way, db, "SELECT 1")
		_ = db.Close()
	}
}

// Owner opens the owner's connection to PostgreSQL itself.
func (s *Stack) Owner(t testing.TB, w Wanted) *sql.DB {
	t.Helper()
	return s.Direct(t, w.Name, w.Name, w.Passwords[database.OwnerLogin])
}

// PooledOwner opens the owner's connection through PgBouncer.
func (s *Stack) PooledOwner(t testing.TB, w Wanted) *sql.DB {
	t.Helper()
	return s.Pooled(t, w.Name, w.Name, w.Passwords[database.OwnerLogin])
}

// As reads a result.
func As[T any](t testing.TB, result json.RawMessage) (v T) {
	t.Helper()
	check.NoError(t, json.Unmarshal(result, &v), string(result))
	return v
}

// condition asks how a login stands.
func (s *Stack) condition(t testing.TB, l LoginOf) command.LoginCondition {
	t.Helper()
	question := command.InspectLogin{DatabaseID: l.DatabaseID(), Username: l.Username, Verifier: l.Verifier}
	status, text, err := s.Request(http.MethodPost, "/v1/logins/inspect", check.Must(json.Marshal(question))(t))
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %s, %v", status, text, err)
	}
	return As[command.LoginState](t, text).Condition
}
