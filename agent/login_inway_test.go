package agent_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// trapIn has a role make, in a database where its owner lets it, a function that changes the role: whoever calls it holds the
// role's row.
func (s *stack) trapIn(t testing.TB, w wanted, l loginOf) {
	t.Helper()
	check.Must(s.owner(t, w).Exec(fmt.Sprintf(`GRANT CONNECT ON DATABASE %q TO %s;
		CREATE SCHEMA theirs; GRANT USAGE, CREATE ON SCHEMA theirs TO %[2]s`, w.name, l.username)))(t)
	check.Must(s.direct(t, w.name, l.username, l.password).Exec(`CREATE FUNCTION theirs.trap() RETURNS void
		LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN ALTER ROLE CURRENT_USER PASSWORD NULL; END $$`))(t)
}

// trapped is a transaction of the owner's that has called such a function.
func (s *stack) trapped(t testing.TB, w wanted) *sql.Tx {
	t.Helper()
	tx := check.Must(s.owner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("SELECT theirs.trap()"))(t)
	return tx
}

// Another customer may be in the way of a stop, in a database of its own.
func TestStopEndsWhoIsInTheWayElsewhere(t *testing.T) {
	overModelsWhole(t, testStopEndsWhoIsInTheWayElsewhere)
}

func testStopEndsWhoIsInTheWayElsewhere(t *testing.T, m database.RoleModel) {
	s := realStack(t)
	w, theirs := s.madeWithRoles(t, m), s.made(t, database.Managed)
	l := s.opened(t, w.additional(1, role.Custom))
	s.trapIn(t, theirs, l)
	tx := s.trapped(t, theirs)
	s.done(t, w.access(2, false, true))
	if tx.Commit() == nil {
		t.Error("the transaction in the way is committed")
	}
	s.done(t, w.access(3, true, false))
	s.getsIn(t, "started again", l)
}

// What a forced change ends is in its own way, not in that of another command, which waits for a customer and leaves it alone.
func TestForcedChangeSparesWhoIsInTheWayOfOthers(t *testing.T) {
	overModelsWhole(t, testForcedChangeSparesWhoIsInTheWayOfOthers)
}

func testForcedChangeSparesWhoIsInTheWayOfOthers(t *testing.T, m database.RoleModel) {
	s := realStack(t)
	w, other := s.madeWithRoles(t, m), s.made(t, database.Managed)
	l := s.opened(t, w.additional(1, role.Custom))
	late := other.additional(1, role.ReadOnly)
	s.trapIn(t, w, l)
	in := check.Must(s.owner(t, other).BeginTx(t.Context(), nil))(t)
	check.Must(in.Exec(fmt.Sprintf("GRANT TEMPORARY ON DATABASE %q TO %s", other.name, other.names().Runtime)))(t)

	prepared := make(chan error, 1)
	go func() {
		_, _, err := s.send(late.prepare(1))
		prepared <- err
	}()
	check.Eventually(t, "the other command does not wait", func() bool {
		return s.one(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock'") == "1"
	})
	tx := s.trapped(t, w)
	s.done(t, l.shut(role.Revocation, 2))
	if tx.Commit() == nil {
		t.Error("the transaction in the way is committed")
	}
	check.NoError(t, in.Commit(), "who is in another command's way")
	check.NoError(t, <-prepared)
	s.done(t, late.prepare(1))
}
