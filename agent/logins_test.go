package agent_test

import (
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
)

// loginOf is one login of a database, as the commands on it name it.
type loginOf struct {
	wanted
	username string
	setup    string // operation of its making
	profile  string
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
func (w wanted) additional(ordinal int, profile string) loginOf {
	l := loginOf{
		wanted: w, username: fmt.Sprintf("pgh_%s_c%d", compact(w.id), ordinal), setup: newUUID(), profile: profile, limit: 3,
	}
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

func (l loginOf) command(operation string, generation int64, p protocol.RolePayload, fresh, old string) protocol.Command {
	p.DatabaseID, p.Username = l.id, l.username
	c := command(protocol.EnsureLogin, operation, protocol.LoginResource(l.id, l.username), generation, p)
	c.Epoch, c.Step, c.Secrets = 0, p.Want, map[string]string{}
	if fresh != "" {
		c.Secrets[protocol.SecretNew] = fresh
	}
	if old != "" {
		c.Secrets[protocol.SecretOld] = old
	}
	return c
}

func (l loginOf) prepare(generation int64) protocol.Command {
	return l.command(l.setup, generation, protocol.RolePayload{
		Want: protocol.LoginPrepared, AccessProfile: l.profile, ConnectionLimit: l.limit,
	}, "", "")
}

func (l loginOf) open(generation int64) protocol.Command {
	return l.command(l.setup, generation, protocol.RolePayload{
		Want: protocol.LoginOpen, AccessProfile: l.profile, ConnectionLimit: l.limit, Verifier: l.verifier, ValidUntil: l.until,
	}, l.password, "")
}

// rotate changes the password to that of next.
func (l loginOf) rotate(generation int64, next loginOf) protocol.Command {
	return l.command(newUUID(), generation, protocol.RolePayload{
		Want: protocol.LoginRotate, Verifier: next.verifier, ValidUntil: next.until, CredentialGeneration: generation,
	}, next.password, l.password)
}

func (l loginOf) shut(want string, generation int64) protocol.Command {
	return l.command(newUUID(), generation, protocol.RolePayload{Want: want}, "", l.password)
}

func (l loginOf) remove(generation int64, account ...string) protocol.Command {
	return l.command(newUUID(), generation, protocol.RolePayload{
		Want: protocol.LoginRemove, AccountDatabases: append([]string{}, account...),
	}, "", "")
}

// opened makes an additional role that may log in.
func (s *stack) opened(t testing.TB, l loginOf) loginOf {
	t.Helper()
	s.done(t, l.prepare(1))
	s.done(t, l.open(1))
	return l
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

// owner opens the owner's connection.
func (s *stack) owner(t testing.TB, w wanted) *sql.DB {
	t.Helper()
	name, password := w.login(database.OwnerLogin)
	return s.direct(t, w.name, name, password)
}

// as reads a result.
func as[T any](t testing.TB, result json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(result, &v); err != nil {
		t.Fatalf("%s: %v", result, err)
	}
	return v
}

// condition asks how a login stands.
func (s *stack) condition(t testing.TB, l loginOf) string {
	t.Helper()
	question := must(json.Marshal(protocol.LoginQuestion{DatabaseID: l.id, Username: l.username, Verifier: l.verifier}))(t)
	status, text, err := s.request(http.MethodPost, "/v1/logins/inspect", question)
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %s, %v", status, text, err)
	}
	return as[protocol.LoginAnswer](t, text).Condition
}
