package agent_test

import (
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// loginOf is one login of a database, as the commands on it name it.
type loginOf struct {
	wanted
	username string
	setup    string // operation of its making
	profile  role.AccessProfile
	limit    int
	password string
	verifier string
	until    *time.Time
}

func newPassword() (password, verifier string) {
	var salt [16]byte
	_, _ = rand.Read(salt[:])
	password = rand.Text()
	return password, credential.Verifier(password, salt, credential.Iterations)
}

// additional is an additional role that a test wants made.
func (w wanted) additional(ordinal int, profile role.AccessProfile) loginOf {
	username := role.ModelOf(w.model).Username(w.databaseID(), ordinal)
	l := loginOf{wanted: w, username: username, setup: newUUID(), profile: profile, limit: 3}
	l.password, l.verifier = newPassword()
	return l
}

// present is a login that came with the database.
func (w wanted) present(l database.Login) loginOf {
	name, password := w.login(l)
	return loginOf{wanted: w, username: name, password: password, verifier: w.verifiers[l]}
}

// renewed is the login with another password.
func (l loginOf) renewed() loginOf {
	l.password, l.verifier = newPassword()
	return l
}

func (l loginOf) prepare(generation int64) protocol.Command {
	return told(l.setup, 0, command.PrepareRole{
		DatabaseID: l.databaseID(), Username: l.username, Generation: generation, AccessProfile: l.profile, ConnectionLimit: l.limit,
	})
}

func (l loginOf) open(generation int64) protocol.Command {
	return told(l.setup, 0, command.AdmitRole{
		DatabaseID: l.databaseID(), Username: l.username, Generation: generation, AccessProfile: l.profile, ConnectionLimit: l.limit,
		Verifier: l.verifier, ValidUntil: l.until, Password: l.password,
	})
}

// rotate changes the password to that of next.
func (l loginOf) rotate(generation int64, next loginOf) protocol.Command {
	return told(newUUID(), 0, command.ChangeLogin{
		DatabaseID: l.databaseID(), Username: l.username, Generation: generation, Want: role.Rotation,
		Verifier: next.verifier, ValidUntil: next.until, CredentialGeneration: generation,
		NewPassword: next.password, OldPassword: l.password,
	})
}

func (l loginOf) shut(want role.Kind, generation int64) protocol.Command {
	return told(newUUID(), 0, command.ChangeLogin{
		DatabaseID: l.databaseID(), Username: l.username, Generation: generation, Want: want, OldPassword: l.password,
	})
}

func (l loginOf) remove(generation int64, account ...string) protocol.Command {
	c := command.RemoveRole{DatabaseID: l.databaseID(), Username: l.username, Generation: generation}
	for _, db := range account {
		c.AccountDatabases = append(c.AccountDatabases, id.DatabaseID(db))
	}
	return told(newUUID(), 0, c)
}

// optIn makes the overlay of a database with a single login.
func (w wanted) optIn() protocol.Command {
	return told(newUUID(), 0, command.EnsureOverlay{DatabaseID: w.databaseID()})
}

// opened makes an additional role that may log in.
func (s *stack) opened(t testing.TB, l loginOf) loginOf {
	t.Helper()
	s.done(t, l.prepare(1))
	s.connect(t, l)
	s.done(t, l.open(1))
	return l
}

// roleStack is databaseStack with an additional role that may log in.
func roleStack(t testing.TB, profile role.AccessProfile) (*stack, wanted, loginOf) {
	t.Helper()
	return roleStackOf(t, database.Managed, profile)
}

// waysOf opens a login's connections: through both entries of the pooler, and to PostgreSQL itself.
func (s *stack) waysOf(t testing.TB, l loginOf) map[string]*sql.DB {
	t.Helper()
	return map[string]*sql.DB{
		"session": s.pooled(t, l.name, l.username, l.password), "direct": s.direct(t, l.name, l.username, l.password),
		"transaction": s.pooled(t, l.name+".transaction", l.username, l.password),
	}
}

// getsIn and getsInNowhere try every way.
func (s *stack) getsIn(t testing.TB, what string, l loginOf) {
	t.Helper()
	for way, db := range s.waysOf(t, l) {
		works(t, what+" "+way, db)
		_ = db.Close()
	}
}

func (s *stack) getsInNowhere(t testing.TB, what string, l loginOf) {
	t.Helper()
	for way, db := range s.waysOf(t, l) {
		refused(t, what+" "+way, db, "SELECT 1")
		_ = db.Close()
	}
}

// owner opens the owner's connection to PostgreSQL, pooledOwner that through PgBouncer.
func (s *stack) owner(t testing.TB, w wanted) *sql.DB {
	t.Helper()
	return s.direct(t, w.name, w.name, w.passwords[database.OwnerLogin])
}

func (s *stack) pooledOwner(t testing.TB, w wanted) *sql.DB {
	t.Helper()
	return s.pooled(t, w.name, w.name, w.passwords[database.OwnerLogin])
}

// session is a log-in to PostgreSQL itself, over the bare driver.
func (s *stack) session(t testing.TB, l loginOf) driver.Conn {
	t.Helper()
	connector := check.Must(pq.NewConnector(s.pg.URLFor(l.username, l.password, l.name)))(t)
	return check.Must(connector.Connect(t.Context()))(t)
}

// as reads a result.
func as[T any](t testing.TB, result json.RawMessage) (v T) {
	t.Helper()
	check.NoError(t, json.Unmarshal(result, &v), string(result))
	return v
}

// condition asks how a login stands.
func (s *stack) condition(t testing.TB, l loginOf) command.LoginCondition {
	t.Helper()
	question := command.InspectLogin{DatabaseID: l.databaseID(), Username: l.username, Verifier: l.verifier}
	status, text, err := s.request(http.MethodPost, "/v1/logins/inspect", check.Must(json.Marshal(question))(t))
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %s, %v", status, text, err)
	}
	return as[command.LoginState](t, text).Condition
}
