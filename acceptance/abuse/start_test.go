package abuse_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/jobs"
)

// startsWithin is how long an agent may take to be in charge, whatever customers have left for it.
const startsWithin = 15 * time.Second

// grantBeforeStart grants things to the logins of backups that are running, in a transaction that stays open and in others, and
// then the agent is killed and started.
func grantBeforeStart(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	const hanging = jobs.DefaultSlots / 2 // all that an account gets
	all := m.hangingDatabases(t, "hanging-start", hanging)
	m.hang(t, all...)
	logins := m.backupLogins(t)
	for _, d := range all {
		m.grant(t, d, strings.Join(logins, ", "))
	}
	noError(t, m.agent.Kill())
	began := time.Now()
	m.agent = must(m.LaunchAgent(""))(t)
	noError(t, m.AwaitAgent(soon(t), m.agent))
	if took := time.Since(began); took > startsWithin {
		t.Errorf("the agent took %s to start, longer than %s", took.Round(time.Millisecond), startsWithin)
	}
	return nil
}

// backupLogins are those that the agent has made for dumps and copies.
func (m *mallory) backupLogins(t *testing.T) []string {
	t.Helper()
	const query = "SELECT quote_ident(rolname) FROM pg_roles WHERE rolname ~ '^(dump|verify)_'"
	names := must(stack.Column(soon(t), m.superuser(t), query))(t)
	if len(names) == 0 {
		t.Fatal("no backup is running")
	}
	return names
}

// grant gives the logins a right on a table that stays, and holds another one open.
func (m *mallory) grant(t *testing.T, d wire.CreatedDatabase, logins string) {
	t.Helper()
	db := m.at(t, d.Name, d.Username, d.Password)
	must(db.ExecContext(soon(t), "GRANT SELECT ON checked TO "+logins))(t)
	tx := must(db.BeginTx(context.Background(), nil))(t)
	t.Cleanup(func() { _ = tx.Rollback() }) // the service may have ended it
	must(tx.ExecContext(soon(t), "LOCK TABLE checked; GRANT INSERT ON checked TO "+logins))(t)
}
