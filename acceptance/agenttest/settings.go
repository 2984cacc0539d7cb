package agenttest

import (
	"database/sql"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// Standard are the timeouts of a profile.
var Standard = &command.Timeouts{StatementMs: 60_000, LockMs: 10_000, IdleInTransactionMs: 30_000}

// Configure is the command that sets what the service wants set.
func (w Wanted) Configure(generation int64, c command.Configure) protocol.Command {
	c.DatabaseID, c.Generation = w.DatabaseID(), generation
	return Told("", 0, c)
}

// Shows checks a parameter in a new session of a login through both entries.
func (s *Stack) Shows(t testing.TB, l LoginOf, parameter, want string) {
	t.Helper()
	for _, entry := range []string{l.Name, l.Name + ".transaction"} {
		db := s.Pooled(t, entry, l.Username, l.Password)
		if got := Shown(t, db, parameter); got != want {
			t.Errorf("%s of %s at %s: %s, want %s", parameter, l.Username, entry, got, want)
		}
		_ = db.Close()
	}
}

// Shown is the value of a parameter in a session.
func Shown(t testing.TB, db interface{ QueryRow(string, ...any) *sql.Row }, parameter string) (value string) {
	t.Helper()
	check.NoError(t, db.QueryRow("SHOW "+parameter).Scan(&value))
	return value
}

// NoOlderSessions waits until no session is older than the settings.
func (s *Stack) NoOlderSessions(t testing.TB, w Wanted) {
	t.Helper()
	check.Eventually(t, "there are still older sessions", func() bool {
		return s.One(t, "SELECT count(*) FROM ledger.database WHERE id = $1 AND settings_since IS NULL", w.ID) == "1"
	})
}
