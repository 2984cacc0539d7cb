package logins_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// soonRemoved demands that a removal finds nothing and does not wait for what others do.
func soonRemoved(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf, generation int64) {
	t.Helper()
	began := time.Now()
	if found := s.Removed(t, l.Remove(generation)); len(found.List) > 0 {
		t.Errorf("the removal finds %+v", found)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the removal took %s", took)
	}
	s.Gone(t, l)
}

func noDead(t testing.TB, s *agenttest.Stack, oid string) {
	t.Helper()
	const query = "SELECT (SELECT count(*) FROM pg_roles WHERE oid = $1) + (SELECT count(*) FROM ledger.dead_role WHERE oid = $1)"
	check.Eventually(t, "the dead role is not dropped", func() bool { return s.One(t, query, oid) == "0" })
}

func oidOf(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) string {
	t.Helper()
	return s.One(t, "SELECT oid FROM pg_roles WHERE rolname = $1", l.Username)
}

// An open grant shows nowhere, and the drop of the role waits for it.
func TestOpenGrantOfAStrangerDoesNotKeepARole(t *testing.T) {
	agenttest.OverModelsWhole(t, testOpenGrantOfAStrangerDoesNotKeepARole)
}

func testOpenGrantOfAStrangerDoesNotKeepARole(t *testing.T, m database.RoleModel) {
	s := agenttest.Shared(t)
	w, stranger := s.MadeWithRoles(t, m), s.Made(t, database.SingleLogin)
	for i, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		l := s.Opened(t, w.Additional(i+1, role.ReadOnly))
		oid := oidOf(t, s, l)
		tx := s.OpenGrant(t, stranger, l.Username)
		soonRemoved(t, s, l, 2)
		check.NoError(t, end(tx))
		check.Must(s.Owner(t, stranger).Exec("DROP TABLE open_bait"))(t)
		noDead(t, s, oid)
	}
	s.NoOrphans(t)
}

// What is there and gone at the look, as a grant that comes and goes: every drop is refused, and nothing can be told.
func TestWhatCannotBeToldDoesNotKeepARole(t *testing.T) {
	agenttest.OverModelsWhole(t, testWhatCannotBeToldDoesNotKeepARole)
}

func testWhatCannotBeToldDoesNotKeepARole(t *testing.T, m database.RoleModel) {
	s, w, l := agenttest.RoleStackOf(t, m, role.ReadOnly)
	oid := oidOf(t, s, l)
	const table = 999999 // there is none of this oid
	check.Must(s.Super.Exec(`INSERT INTO pg_shdepend (dbid, classid, objid, objsubid, refclassid, refobjid, deptype)
		SELECT oid, 'pg_class'::regclass, $1, 0, 'pg_authid'::regclass, $2, 'a' FROM pg_database WHERE datname = $3`,
		table, oid, w.Name))(t)
	soonRemoved(t, s, l, 2)
	check.Must(s.Super.Exec("DELETE FROM pg_shdepend WHERE objid = $1 AND refobjid = $2", table, oid))(t)
	noDead(t, s, oid)
}

// Neither a start of the agent nor a later burial waits for who grants to a dead role.
func TestOpenGrantToADeadRoleHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	agenttest.OverModelsWhole(t, testOpenGrantToADeadRoleHoldsNobodyUp)
}

func testOpenGrantToADeadRoleHoldsNobodyUp(t *testing.T, m database.RoleModel) {
	s := agenttest.CrashStack(t)
	first := s.Child(t, "")
	w, stranger := s.MadeWithRoles(t, m), s.Made(t, database.SingleLogin)
	theirs := s.Owner(t, stranger)
	var oids []string
	for i := range 2 {
		l := s.Opened(t, w.Additional(i+1, role.ReadOnly))
		oids = append(oids, oidOf(t, s, l))
		check.Must(theirs.Exec(fmt.Sprintf("CREATE TABLE bait%d (); GRANT SELECT ON bait%[1]d TO %s", i, l.Username)))(t)
		soonRemoved(t, s, l, 2)
		if i == 0 {
			buried := s.One(t, "SELECT rolname FROM pg_roles WHERE oid = $1", oids[0])
			s.OpenGrant(t, stranger, buried)
			check.Must(theirs.Exec("DROP TABLE bait0"))(t)
		}
	}
	first.Kill()
	s.Child(t, "")
	check.Must(theirs.Exec("DROP TABLE bait1"))(t)
	noDead(t, s, oids[1])
}
