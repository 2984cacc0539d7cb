package relocate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// What comes back is what the backup had. What belongs to the database as a whole is what it was in the moment of the switch.
func TestWhatARestoreBringsBack(t *testing.T) {
	t.Parallel()
	s, w := agenttest.DatabaseStack(t)
	first, second := s.Opened(t, w.Additional(1, role.Custom)), s.Opened(t, w.Additional(2, role.ReadWrite))
	owner := s.Owner(t, w)
	check.Must(owner.Exec(fmt.Sprintf(agenttest.Furnishing, w.Name, first.Username, second.Username)))(t)
	of := s.Direct(t, w.Name, first.Username, first.Password)
	check.Must(of.Exec("CREATE TABLE of_first (id int); GRANT SELECT ON of_first TO " + second.Username))(t)
	check.Must(of.Exec(fmt.Sprintf("GRANT CREATE ON DATABASE %q TO %s", w.Name, second.Username)))(t)
	before := s.Dumped(t, w)
	s.Verified(t, w)

	check.Must(owner.Exec(`DROP TABLE things CASCADE; DROP FUNCTION double; SELECT lo_unlink(4711); CREATE SCHEMA later`))(t)
	later := s.Opened(t, w.Additional(3, role.ReadOnly))
	check.Must(owner.Exec(fmt.Sprintf(`REVOKE CONNECT ON DATABASE %[1]q FROM %[2]s; GRANT TEMPORARY ON DATABASE %[1]q TO PUBLIC;
		ALTER ROLE %[1]q IN DATABASE %[1]q SET search_path = "$user", public, "a, ""b""";
		ALTER ROLE %[1]q IN DATABASE %[1]q SET DateStyle = 'SQL, DMY';
		CREATE EXTENSION pg_trgm; SELECT show_limit(); ALTER ROLE %[1]q IN DATABASE %[1]q SET pg_trgm.similarity_threshold = 0.4;
		ALTER ROLE %[1]q IN DATABASE %[1]q SET work_mem = '7MB'`, w.Name, second.Username)))(t)
	s.Done(t, w.Configure(1, command.Configure{Timeouts: agenttest.Standard}))
	const byAdmin = `COMMENT ON DATABASE %[1]q IS 'it''s \'; ALTER DATABASE %[1]q CONNECTION LIMIT 12`
	check.Must(s.Super.Exec(fmt.Sprintf(byAdmin, w.Name)))(t)
	whole, oid := s.WholeOf(t, w), s.DatabaseOID(t, w)
	// A setting of a role that is not one of the database's stays behind.
	check.Must(s.Super.Exec(fmt.Sprintf(`ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '3MB'`, w.Name)))(t)
	s.Restored(t, w)

	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(s.Dumped(t, w), "\n")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(strings.Split(whole, "\n"), strings.Split(s.WholeOf(t, w), "\n")); diff != "" {
		t.Error(diff)
	}
	if s.DatabaseOID(t, w) == oid {
		t.Error("it is the same database")
	}
	for _, l := range []agenttest.LoginOf{w.Present(database.OwnerLogin), w.Present(database.RuntimeLogin), first, later} {
		s.GetsIn(t, l.Username, l)
	}
	s.GetsInNowhere(t, "a role that has lost CONNECT", second)
	s.Shows(t, w.Present(database.OwnerLogin), "statement_timeout", "1min")
}

// What belonged to a role that was removed since the backup belongs to the owner, and the result says which policy is gone.
func TestRestoreWithoutARoleThatIsGone(t *testing.T) {
	agenttest.OverModels(t, testRestoreWithoutARoleThatIsGone)
}

func testRestoreWithoutARoleThatIsGone(t *testing.T, m database.RoleModel) {
	s, w, l := agenttest.RoleStackOf(t, m, role.Custom)
	check.Must(s.Owner(t, w).Exec(fmt.Sprintf(`CREATE TABLE things (id int); GRANT SELECT ON things TO %[1]s;
		CREATE POLICY its_own ON things TO %[1]s USING (true); GRANT CREATE ON SCHEMA public TO %[1]s`, l.Username)))(t)
	check.Must(s.Direct(t, w.Name, l.Username, l.Password).Exec("CREATE TABLE of_role (id int)"))(t)
	s.Saved(t, w)
	check.Must(s.Owner(t, w).Exec(fmt.Sprintf("DROP TABLE things; REVOKE CREATE ON SCHEMA public FROM %[1]s", l.Username)))(t)
	check.Must(s.Direct(t, w.Name, l.Username, l.Password).Exec("DROP TABLE of_role"))(t)
	if found := s.Removed(t, l.Remove(2)); len(found.List) > 0 {
		t.Fatalf("%+v", found)
	}
	operation := agenttest.NewUUID()
	report := s.Loaded(t, w.Load(operation))
	if report.State != command.LoadReady || len(report.Notes) != 1 ||
		!strings.Contains(report.Notes[0], "its_own ON public.things") {
		t.Fatalf("%+v", report)
	}
	s.Done(t, w.Switching(operation))
	s.WantOwnersTable(t, w)
	s.Discarded(t, w, operation)
	s.Gone(t, l)
}

// A role that is removed while the copy stands leaves nothing in it either.
func TestRoleIsRemovedBeforeTheSwitch(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	l := s.Opened(t, w.Additional(1, role.Custom))
	check.Must(s.Owner(t, w).Exec("GRANT CREATE ON SCHEMA public TO " + l.Username))(t)
	of := s.Direct(t, w.Name, l.Username, l.Password)
	check.Must(of.Exec("CREATE TABLE of_role (id int)"))(t)
	s.Saved(t, w)
	check.Must(of.Exec("DROP TABLE of_role"))(t)
	check.Must(s.Owner(t, w).Exec("REVOKE CREATE ON SCHEMA public FROM " + l.Username))(t)
	operation := agenttest.NewUUID()
	s.Ready(t, w, operation)
	s.Removed(t, l.Remove(2))
	s.Done(t, w.Switching(operation))
	s.WantOwnersTable(t, w)
	s.Discarded(t, w, operation)
	s.Gone(t, l)
}

// A customer's own transactions are no obstacle: one that changes the role, and another account's that passes on what it was
// granted on the database.
func TestSwitchPushesThroughTransactions(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	stranger := s.Made(t, database.SingleLogin)
	check.Must(s.Owner(t, w).Exec(fmt.Sprintf("GRANT CREATE ON DATABASE %q TO %q WITH GRANT OPTION", w.Name, stranger.Name)))(t)
	s.Saved(t, w)
	operation := agenttest.NewUUID()
	s.Ready(t, w, operation)
	whole := s.WholeOf(t, w)
	own := check.Must(s.Owner(t, w).Begin())(t)
	check.Must(own.Exec("ALTER ROLE CURRENT_USER SET work_mem = '5MB'"))(t)
	theirs := check.Must(s.Owner(t, stranger).Begin())(t)
	check.Must(theirs.Exec(fmt.Sprintf("GRANT CREATE ON DATABASE %q TO pg_monitor", w.Name)))(t)
	s.Done(t, w.Switching(operation))
	if err := theirs.Commit(); err == nil {
		t.Error("the stranger's grant was committed")
	}
	if now := s.WholeOf(t, w); now != whole {
		t.Errorf("%s\n%s", whole, now)
	}
	s.Discarded(t, w, operation)
}
