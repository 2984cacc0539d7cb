package logins_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// settled is a role that has a bit of everything which the owner could not clear alone: its own large object and default
// privileges, and a schema and tables from when the owner let it make them.
func settled(t testing.TB, s *agenttest.Stack, owner *sql.DB, l agenttest.LoginOf) agenttest.LoginOf {
	t.Helper()
	s.Opened(t, l)
	on := fmt.Sprintf("GRANT CREATE ON DATABASE %q TO %s; GRANT CREATE, USAGE ON SCHEMA public TO %[2]s", l.Name, l.Username)
	check.Must(owner.Exec(on))(t)
	theirs := s.Pooled(t, l.Name, l.Username, l.Password)
	check.Must(theirs.Exec(`SELECT lo_create(0); ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC; CREATE SCHEMA theirs;
		CREATE TABLE theirs.things (n int); INSERT INTO theirs.things VALUES (7); CREATE TABLE public.things ()`))(t)
	off := strings.NewReplacer("GRANT", "REVOKE", " TO ", " FROM ").Replace(on)
	check.Must(owner.Exec(off))(t)
	return l
}

// What keeps a role from being removed, the owner can do away with, whatever it is: step by step, or as a whole. Nobody else
// gets that right, and nobody can act as the role.
func TestOwnerClearsWhatKeepsARole(t *testing.T) {
	agenttest.OverModels(t, testOwnerClearsWhatKeepsARole)
}

func testOwnerClearsWhatKeepsARole(t *testing.T, m database.RoleModel) {
	s, w := agenttest.ModelStack(t, m)
	owner, other := s.PooledOwner(t, w), another(t, s, w)
	const kept = "DO $$ BEGIN ASSERT (SELECT n FROM theirs.things) = 7; END $$"
	for i, clear := range []string{
		`SELECT lo_unlink(oid) FROM pg_largeobject_metadata WHERE lomowner = '%[1]s'::regrole; DROP TABLE things;
			ALTER DEFAULT PRIVILEGES FOR ROLE %[1]s REVOKE SELECT ON TABLES FROM PUBLIC; ALTER TABLE theirs.things OWNER TO CURRENT_USER;
			ALTER SCHEMA theirs OWNER TO CURRENT_USER; ` + kept,
		"REASSIGN OWNED BY %[1]s TO CURRENT_USER; DROP OWNED BY %[1]s; " + kept,
		"DROP OWNED BY %[1]s CASCADE",
	} {
		l := settled(t, s, owner, w.Additional(i+1, role.Custom))
		agenttest.Refused(t, "the owner, before the removal", owner, agenttest.Filled(clear, l.Username))
		for generation := range int64(2) {
			if found := s.Removed(t, l.Remove(2+generation)); len(found.List) != 5 {
				t.Errorf("%+v", found)
			}
		}
		onlyCeded(t, s, owner, l, other)
		if _, err := owner.Exec(agenttest.Filled(clear, l.Username)); err != nil {
			t.Errorf("the owner: %s: %v", clear, err)
		}
		if found := s.Removed(t, l.Remove(4)); len(found.List) > 0 {
			t.Errorf("after %s: %+v", clear, found)
		}
		s.Gone(t, l)
		check.Must(owner.Exec("DROP SCHEMA IF EXISTS theirs CASCADE; DROP TABLE IF EXISTS things"))(t)
	}
	s.NoOrphans(t)
}

// onlyCeded checks that what the owner has of a dead role is no more than the right to its things, and that the role stays dead.
func onlyCeded(t testing.TB, s *agenttest.Stack, owner *sql.DB, l, other agenttest.LoginOf) {
	t.Helper()
	for _, statement := range []string{
		"SET ROLE %[1]s", "SET SESSION AUTHORIZATION %[1]s", "ALTER ROLE %[1]s LOGIN", "ALTER ROLE %[1]s PASSWORD 'x'",
		"ALTER ROLE %[1]s RENAME TO other", "DROP ROLE %[1]s", fmt.Sprintf("GRANT %%[1]s TO %q", other.Username),
		"ALTER SCHEMA public OWNER TO %[1]s",
	} {
		agenttest.Refused(t, "the owner", owner, agenttest.Filled(statement, l.Username))
	}
	another := s.Pooled(t, l.Name, other.Username, other.Password)
	defer another.Close()
	agenttest.Refused(t, "another login", another, "DROP OWNED BY "+l.Username)
	s.GetsInNowhere(t, "kept", l)
}
