package logins_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// trapIn has a role make, in a database where its owner lets it, a function that changes the role: whoever calls it holds the
// role's row.
func trapIn(t testing.TB, s *agenttest.Stack, w agenttest.Wanted, l agenttest.LoginOf) {
	t.Helper()
	check.Must(s.Owner(t, w).Exec(fmt.Sprintf(`GRANT CONNECT ON DATABASE %q TO %s;
		CREATE SCHEMA theirs; GRANT USAGE, CREATE ON SCHEMA theirs TO %[2]s`, w.Name, l.Username)))(t)
	check.Must(s.Direct(t, w.Name, l.Username, l.Password).Exec(`CREATE FUNCTION theirs.trap() RETURNS void
		LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN ALTER ROLE CURRENT_USER PASSWORD NULL; END $$`))(t)
}

// trapped is a transaction of the owner's that has called such a function.
func trapped(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) *sql.Tx {
	t.Helper()
	tx := check.Must(s.Owner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("SELECT theirs.trap()"))(t)
	return tx
}

// What a forced change ends is in its own way, not in that of another command, which waits for a customer and leaves it alone.
func TestForcedChangeSparesWhoIsInTheWayOfOthers(t *testing.T) {
	agenttest.OverModelsWhole(t, testForcedChangeSparesWhoIsInTheWayOfOthers)
}

func testForcedChangeSparesWhoIsInTheWayOfOthers(t *testing.T, m database.RoleModel) {
	s := agenttest.Shared(t)
	w, other := s.MadeWithRoles(t, m), s.Made(t, database.Managed)
	l := s.Opened(t, w.Additional(1, role.Custom))
	late := other.Additional(1, role.ReadOnly)
	trapIn(t, s, w, l)
	in := check.Must(s.Owner(t, other).BeginTx(t.Context(), nil))(t)
	check.Must(in.Exec(fmt.Sprintf("GRANT TEMPORARY ON DATABASE %q TO %s", other.Name, other.Names().Runtime)))(t)

	prepared := make(chan error, 1)
	go func() {
		_, _, err := s.Send(late.Prepare(1))
		prepared <- err
	}()
	check.Eventually(t, "the other command does not wait", func() bool {
		return s.One(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock'") == "1"
	})
	tx := trapped(t, s, w)
	s.Done(t, l.Shut(role.Revocation, 2))
	if tx.Commit() == nil {
		t.Error("the transaction in the way is committed")
	}
	check.NoError(t, in.Commit(), "who is in another command's way")
	check.NoError(t, <-prepared)
	s.Done(t, late.Prepare(1))
}
