package inventory_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/id"
)

// wantRights has the doctor find these inside a database.
func wantRights(t testing.TB, s *agenttest.Stack, w agenttest.Wanted, codes ...doctor.Code) {
	t.Helper()
	record := database.Record{ID: id.DatabaseID(w.ID), Name: w.Name, RoleModel: w.Model}
	has := s.RightsIn(t, w)
	var found []doctor.Code
	for _, f := range doctor.ExamineRights(&doctor.Database{Record: record}, has) {
		found = append(found, f.Code)
	}
	slices.Sort(found)
	if found = slices.Compact(found); !slices.Equal(found, codes) {
		t.Errorf("found %v, want %v: %+v", found, codes, has)
	}
}

func TestRightsInside(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	owner := s.Owner(t, w)
	// Nothing of the owner's is called, whatever it is named.
	check.Must(owner.Exec(`CREATE FUNCTION public.lower(text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END';
		CREATE FUNCTION public.aclexplode(aclitem[]) RETURNS SETOF record LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END';
		CREATE FUNCTION public.equals(name, name) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END';
		CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = name, FUNCTION = public.equals);
		CREATE VIEW public.pg_namespace AS SELECT 1; CREATE VIEW public.pg_roles AS SELECT 1;
		CREATE TABLE things (); GRANT ALL ON SCHEMA public TO PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC`))(t)
	wantRights(t, s, w)
	s.Saved(t, w)
	s.Restored(t, w)
	wantRights(t, s, w)
	n := w.Names()
	owner = s.Owner(t, w)
	check.Must(owner.Exec("ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM " + n.ReadGroup))(t)
	wantRights(t, s, w, doctor.GroupRights)
	check.Must(owner.Exec("DROP SCHEMA public CASCADE"))(t)
	wantRights(t, s, w, doctor.GroupRights, doctor.SchemaGiven)
	super := s.SuperIn(t, w)
	check.Must(super.Exec("CREATE SCHEMA public AUTHORIZATION pg_database_owner"))(t)
	wantRights(t, s, w, doctor.GroupRights, doctor.SchemaOwner)
	check.Must(super.Exec(fmt.Sprintf("ALTER SCHEMA public OWNER TO %q", n.Runtime)))(t)
	wantRights(t, s, w, doctor.GroupRights, doctor.SchemaGiven)
	wantRights(t, s, s.Made(t, database.SingleLogin))
}

// A database that the agent cannot look into is told as that, soon, and keeps no other from being looked into.
func TestRightsInsideWhatIsInTheWay(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	for _, setting := range []string{"CONNECTION LIMIT 0", "ALLOW_CONNECTIONS false"} {
		check.Must(s.Super.Exec(fmt.Sprintf("ALTER DATABASE %q %s", w.Name, setting)))(t)
		wantRights(t, s, w, doctor.RightsUnread)
	}
	check.Must(s.Super.Exec(fmt.Sprintf("ALTER DATABASE %q ALLOW_CONNECTIONS true CONNECTION LIMIT -1", w.Name)))(t)

	owner := s.Owner(t, w)
	owner.SetMaxOpenConns(0)
	for _, catalog := range []string{"pg_namespace", "pg_class", "pg_default_acl"} {
		held := check.Must(owner.Begin())(t)
		check.Must(held.Exec("SELECT FROM " + catalog))(t)
		ended := make(chan error, 1)
		go func() {
			_, err := owner.Exec("CREATE RULE mine AS ON INSERT TO pg_catalog." + catalog + " DO NOTHING")
			ended <- err
		}()
		check.Eventually(t, "it does not wait", func() bool {
			return s.One(t, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'relation'") != "0" || len(ended) > 0
		})
		s.RightsIn(t, w)
		if err := <-ended; err == nil {
			t.Error("the rule was made")
		}
		check.NoError(t, held.Commit())
	}
	wantRights(t, s, w)
}
