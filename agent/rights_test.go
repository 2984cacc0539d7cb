package agent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/id"
)

// rightsIn is what the agent says of the rights inside a database.
func (s *stack) rightsIn(t testing.TB, w wanted) (has command.Rights) {
	t.Helper()
	began := time.Now()
	status, text, err := s.request(http.MethodGet, "/v1/databases/"+w.id+"/rights", nil)
	check.NoError(t, err)
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the look took %s", took)
	}
	check.NoError(t, json.Unmarshal(text, &has))
	return has
}

// wantRights has the doctor find these inside a database.
func (s *stack) wantRights(t testing.TB, w wanted, codes ...doctor.Code) {
	t.Helper()
	record := database.Record{ID: id.DatabaseID(w.id), Name: w.name, RoleModel: w.model}
	has := s.rightsIn(t, w)
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
	s, w := databaseStack(t)
	owner := s.owner(t, w)
	// Nothing of the owner's is called, whatever it is named.
	check.Must(owner.Exec(`CREATE FUNCTION public.lower(text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END';
		CREATE FUNCTION public.aclexplode(aclitem[]) RETURNS SETOF record LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END';
		CREATE FUNCTION public.equals(name, name) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END';
		CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = name, FUNCTION = public.equals);
		CREATE VIEW public.pg_namespace AS SELECT 1; CREATE VIEW public.pg_roles AS SELECT 1;
		CREATE TABLE things (); GRANT ALL ON SCHEMA public TO PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC`))(t)
	s.wantRights(t, w)
	s.saved(t, w)
	s.restored(t, w)
	s.wantRights(t, w)
	n := w.names()
	owner = s.owner(t, w)
	check.Must(owner.Exec("ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM " + n.ReadGroup))(t)
	s.wantRights(t, w, doctor.GroupRights)
	check.Must(owner.Exec("DROP SCHEMA public CASCADE"))(t)
	s.wantRights(t, w, doctor.GroupRights, doctor.SchemaGiven)
	super := s.superIn(t, w)
	check.Must(super.Exec("CREATE SCHEMA public AUTHORIZATION pg_database_owner"))(t)
	s.wantRights(t, w, doctor.GroupRights, doctor.SchemaOwner)
	check.Must(super.Exec(fmt.Sprintf("ALTER SCHEMA public OWNER TO %q", n.Runtime)))(t)
	s.wantRights(t, w, doctor.GroupRights, doctor.SchemaGiven)
	s.wantRights(t, s.made(t, database.SingleLogin))
}

// A database that the agent cannot look into is told as that, soon, and keeps no other from being looked into.
func TestRightsInsideWhatIsInTheWay(t *testing.T) {
	s, w := databaseStack(t)
	for _, setting := range []string{"CONNECTION LIMIT 0", "ALLOW_CONNECTIONS false"} {
		check.Must(s.super.Exec(fmt.Sprintf("ALTER DATABASE %q %s", w.name, setting)))(t)
		s.wantRights(t, w, doctor.RightsUnread)
	}
	check.Must(s.super.Exec(fmt.Sprintf("ALTER DATABASE %q ALLOW_CONNECTIONS true CONNECTION LIMIT -1", w.name)))(t)

	owner := s.owner(t, w)
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
			return s.one(t, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'relation'") != "0" || len(ended) > 0
		})
		s.rightsIn(t, w)
		if err := <-ended; err == nil {
			t.Error("the rule was made")
		}
		check.NoError(t, held.Commit())
	}
	s.wantRights(t, w)
}
