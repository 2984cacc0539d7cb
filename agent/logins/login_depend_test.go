package logins_test

import (
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// locked keeps everybody from a table in a database, as the superuser, until the transaction that it returns ends.
func locked(t testing.TB, s *agenttest.Stack, database, table string) *sql.Tx {
	t.Helper()
	tx := check.Must(agenttest.Open(t, s.PG.URL(database)).BeginTx(t.Context(), nil))(t)
	t.Cleanup(func() { _ = tx.Rollback() })
	check.Must(tx.Exec("LOCK TABLE " + table + " IN ACCESS EXCLUSIVE MODE"))(t)
	return tx
}

// Of a role with very many dependencies no more are looked into than are told: neither those of its database beyond the limit,
// which nobody can look into here, nor those of other databases, which nobody can reach.
func TestNoMoreIsLookedIntoThanIsTold(t *testing.T) {
	agenttest.OverModelsWhole(t, testNoMoreIsLookedIntoThanIsTold)
}

func testNoMoreIsLookedIntoThanIsTold(t *testing.T, m database.RoleModel) {
	s := agenttest.Shared(t)
	w, sibling := s.MadeWithRoles(t, m), s.Made(t, database.SingleLogin)
	l := s.Opened(t, w.Additional(1, role.Custom))
	owner := s.Owner(t, w)
	for i := range 21 {
		check.Must(owner.Exec(fmt.Sprintf("CREATE TABLE t%d (); GRANT SELECT ON t%[1]d TO %s", i, l.Username)))(t)
	}
	check.Must(owner.Exec("CREATE POLICY last ON t0 TO " + l.Username))(t)
	check.Must(s.Owner(t, sibling).Exec("CREATE TABLE bait (); GRANT SELECT ON bait TO " + l.Username))(t)
	check.Must(s.Super.Exec(fmt.Sprintf("ALTER DATABASE %q ALLOW_CONNECTIONS false", sibling.Name)))(t)
	locked(t, s, w.Name, "pg_policy") // every description of a policy reads it
	if found := s.Removed(t, l.Remove(2, sibling.ID)); len(found.List) != 20 || !found.Truncated {
		t.Errorf("%d, truncated: %t", len(found.List), found.Truncated)
	}
}

// Removals connect to the databases of customers, and stay within the connections that are kept for the agent.
func TestFewRemovalsLookAtOnce(t *testing.T) {
	s := agenttest.Shared(t)
	const removals, atOnce = 4, 1
	var logins []agenttest.LoginOf
	var names string
	for range removals {
		w := s.Made(t, database.Managed)
		l := s.Opened(t, w.Additional(1, role.Custom))
		check.Must(s.Owner(t, w).Exec("CREATE TABLE t (); CREATE POLICY few ON t TO " + l.Username))(t)
		logins, names = append(logins, l), names+w.Name+","
	}
	var doing sync.WaitGroup
	var locks []*sql.Tx
	for _, l := range logins {
		locks = append(locks, locked(t, s, l.Name, "pg_policy"))
		doing.Go(func() {
			if found := s.Removed(t, l.Remove(2)); len(found.List) != 1 {
				t.Errorf("%+v", found)
			}
		})
	}
	const inside = `SELECT count(*) FROM pg_stat_activity
		WHERE usename = 'pgherd_agent' AND datname = ANY (string_to_array($1, ','))`
	check.Eventually(t, "not as many look as may", func() bool { return s.One(t, inside, names) == fmt.Sprint(atOnce) })
	time.Sleep(time.Second) // the others have come as far by then
	if n := s.One(t, inside, names); n != fmt.Sprint(atOnce) {
		t.Errorf("%s look at once", n)
	}
	for _, lock := range locks {
		_ = lock.Rollback()
	}
	doing.Wait()
}
