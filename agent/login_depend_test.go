package agent_test

import (
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// locked keeps everybody from a table in a database, as the superuser, until the transaction that it returns ends.
func (s *stack) locked(t testing.TB, database, table string) *sql.Tx {
	t.Helper()
	tx := check.Must(open(t, s.pg.URL(database)).BeginTx(t.Context(), nil))(t)
	t.Cleanup(func() { _ = tx.Rollback() })
	check.Must(tx.Exec("LOCK TABLE " + table + " IN ACCESS EXCLUSIVE MODE"))(t)
	return tx
}

// Of a role with very many dependencies no more are looked into than are told: neither those of its database beyond the limit,
// which nobody can look into here, nor those of other databases, which nobody can reach.
func TestNoMoreIsLookedIntoThanIsTold(t *testing.T) {
	overModelsWhole(t, testNoMoreIsLookedIntoThanIsTold)
}

func testNoMoreIsLookedIntoThanIsTold(t *testing.T, m database.RoleModel) {
	s := realStack(t)
	w, sibling := s.madeWithRoles(t, m), s.made(t, database.SingleLogin)
	l := s.opened(t, w.additional(1, role.Custom))
	owner := s.owner(t, w)
	for i := range 21 {
		check.Must(owner.Exec(fmt.Sprintf("CREATE TABLE t%d (); GRANT SELECT ON t%[1]d TO %s", i, l.username)))(t)
	}
	check.Must(owner.Exec("CREATE POLICY last ON t0 TO " + l.username))(t)
	check.Must(s.owner(t, sibling).Exec("CREATE TABLE bait (); GRANT SELECT ON bait TO " + l.username))(t)
	check.Must(s.super.Exec(fmt.Sprintf("ALTER DATABASE %q ALLOW_CONNECTIONS false", sibling.name)))(t)
	s.locked(t, w.name, "pg_policy") // every description of a policy reads it
	if found := s.removed(t, l.remove(2, sibling.id)); len(found.List) != 20 || !found.Truncated {
		t.Errorf("%d, truncated: %t", len(found.List), found.Truncated)
	}
}

// Removals connect to the databases of customers, and stay within the connections that are kept for the agent.
func TestFewRemovalsLookAtOnce(t *testing.T) {
	s := realStack(t)
	const removals, atOnce = 4, 1
	var logins []loginOf
	var names string
	for range removals {
		w := s.made(t, database.Managed)
		l := s.opened(t, w.additional(1, role.Custom))
		check.Must(s.owner(t, w).Exec("CREATE TABLE t (); CREATE POLICY few ON t TO " + l.username))(t)
		logins, names = append(logins, l), names+w.name+","
	}
	var doing sync.WaitGroup
	var locks []*sql.Tx
	for _, l := range logins {
		locks = append(locks, s.locked(t, l.name, "pg_policy"))
		doing.Go(func() {
			if found := s.removed(t, l.remove(2)); len(found.List) != 1 {
				t.Errorf("%+v", found)
			}
		})
	}
	const inside = `SELECT count(*) FROM pg_stat_activity
		WHERE usename = 'pgherd_agent' AND datname = ANY (string_to_array($1, ','))`
	check.Eventually(t, "not as many look as may", func() bool { return s.one(t, inside, names) == fmt.Sprint(atOnce) })
	time.Sleep(time.Second) // the others have come as far by then
	if n := s.one(t, inside, names); n != fmt.Sprint(atOnce) {
		t.Errorf("%s look at once", n)
	}
	for _, lock := range locks {
		_ = lock.Rollback()
	}
	doing.Wait()
}
