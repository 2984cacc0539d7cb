package agenttest

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/role"
)

// Anyone can grant to a role whose name they know, and names stand in pg_roles: also those of dead roles.

// OpenGrant is a stranger's transaction that grants to a role, and stays open.
func (s *Stack) OpenGrant(t testing.TB, stranger Wanted, role string) *sql.Tx {
	t.Helper()
	theirs := s.Owner(t, stranger)
	check.Must(theirs.Exec("CREATE TABLE IF NOT EXISTS open_bait ()"))(t)
	tx := check.Must(theirs.BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec(fmt.Sprintf("GRANT SELECT ON open_bait TO %q", role)))(t)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// Removed sends a removal and returns what keeps the role.
func (s *Stack) Removed(t testing.TB, c protocol.Command) role.Dependencies {
	t.Helper()
	return As[role.Dependencies](t, s.Done(t, c))
}

// Gone demands that nothing of a role is left.
func (s *Stack) Gone(t testing.TB, l LoginOf) {
	t.Helper()
	const query = `SELECT (SELECT count(*) FROM pg_roles WHERE rolname = $1) + (SELECT count(*) FROM ledger.role WHERE name = $1) +
		(SELECT count(*) FROM pooler.gate WHERE login = $1)`
	if n := s.One(t, query, l.Username); n != "0" {
		t.Errorf("%s traces of %s", n, l.Username)
	}
}

// Quoted is a name as an SQL identifier.
func Quoted(name string) string { return `"` + name + `"` }
