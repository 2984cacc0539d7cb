package relocate_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// stores has a login store so many bytes for itself in a database, whether it may connect there or not.
func stores(t *testing.T, login *sql.DB, in agenttest.Wanted, bytes int) {
	t.Helper()
	const store = `DO $$ BEGIN
		EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %%I SET search_path = %%L', '%s', repeat('x', %d)); END $$`
	check.Must(login.Exec(fmt.Sprintf(store, in.Name, bytes)))(t)
}

// storedBy counts the databases, also those that are gone, in which a login has stored something.
const storedBy = `SELECT count(*) FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole WHERE r.rolname = $1`

// A switch repeats the settings of the database's own logins, and refuses more than it can repeat in time, with a text that says
// whose. Those of others go with the database that it replaces. None of them is in the way of a removal or a purge.
func TestSettingsThatLoginsStore(t *testing.T) {
	t.Parallel()
	s, w, l := agenttest.RoleStack(t, role.Custom)
	stranger := s.Made(t, database.SingleLogin)
	theirs, its := s.Owner(t, stranger), s.Direct(t, w.Name, l.Username, l.Password)
	s.Saved(t, w)
	operation := agenttest.NewUUID()
	s.Ready(t, w, operation)
	stores(t, theirs, w, 2_000_000)
	stores(t, its, w, 1_000_000)
	oid := s.DatabaseOID(t, w)
	refused := func(want string) {
		t.Helper()
		_, reason, err := s.Send(w.Switching(operation))
		if err != nil || !strings.HasPrefix(reason, string(command.ReasonFailed)+": "+want) {
			t.Errorf("%s: %v", reason, err)
		}
		s.GetsIn(t, "after the refusal", w.Present(database.OwnerLogin))
	}
	refused("the login " + l.Username + " has stored more than 200 settings, or 64 KiB of them, for the database")
	check.Must(its.Exec(fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q RESET ALL", w.Name)))(t)

	each := func(db *sql.DB, statement string) {
		t.Helper()
		check.Must(db.Exec(`DO $$ BEGIN FOR n IN 1..340 LOOP EXECUTE format('` + statement + `', 'many_' || n); END LOOP; END $$`))(t)
	}
	each(s.Super, "CREATE ROLE %I")
	each(s.Owner(t, w), `GRANT ALL ON DATABASE "`+w.Name+`" TO %I`)
	refused("more than 1000 privileges are granted on the database")
	each(s.Owner(t, w), `REVOKE ALL ON DATABASE "`+w.Name+`" FROM %I`)
	each(s.Super, "DROP ROLE %I")

	s.Done(t, w.Switching(operation))
	if s.DatabaseOID(t, w) == oid {
		t.Error("it is the same database")
	}
	s.Discarded(t, w, operation)
	if n := s.One(t, storedBy, stranger.Name); n != "0" {
		t.Errorf("the stranger's settings are stored in %s databases", n)
	}
	stores(t, its, stranger, 1_000_000)
	if found := s.Removed(t, l.Remove(2)); found.Any() {
		t.Errorf("%+v", found)
	}
	s.Gone(t, l)
	stores(t, theirs, w, 1_000_000)
	s.Deleted(t, w, 5)
	s.Done(t, w.Purging(agenttest.NewUUID()))
	s.IsPurged(t, w)
	const dangling = `SELECT count(*) FROM pg_db_role_setting s WHERE s.setrole <> 0 AND s.setrole NOT IN (SELECT oid FROM pg_roles)
		OR s.setdatabase <> 0 AND s.setdatabase NOT IN (SELECT oid FROM pg_database)`
	if n := s.One(t, dangling); n != "0" {
		t.Errorf("%s settings are of nobody", n)
	}
}
