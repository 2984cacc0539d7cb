package agent_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// settled is a role that has a bit of everything which the owner could not clear alone: its own large object and default
// privileges, and a schema and tables from when the owner let it make them.
func (s *stack) settled(t testing.TB, owner *sql.DB, l loginOf) loginOf {
	t.Helper()
	s.opened(t, l)
	on := fmt.Sprintf("GRANT CREATE ON DATABASE %q TO %s; GRANT CREATE, USAGE ON SCHEMA public TO %[2]s", l.name, l.username)
	check.Must(owner.Exec(on))(t)
	theirs := s.pooled(t, l.name, l.username, l.password)
	check.Must(theirs.Exec(`SELECT lo_create(0); ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC; CREATE SCHEMA theirs;
		CREATE TABLE theirs.things (n int); INSERT INTO theirs.things VALUES (7); CREATE TABLE public.things ()`))(t)
	off := strings.NewReplacer("GRANT", "REVOKE", " TO ", " FROM ").Replace(on)
	check.Must(owner.Exec(off))(t)
	return l
}

// What keeps a role from being removed, the owner can do away with, whatever it is: step by step, or as a whole. Nobody else
// gets that right, and nobody can act as the role.
func TestOwnerClearsWhatKeepsARole(t *testing.T) { overModels(t, testOwnerClearsWhatKeepsARole) }

func testOwnerClearsWhatKeepsARole(t *testing.T, m database.RoleModel) {
	s, w := modelStack(t, m)
	owner, other := s.pooledOwner(t, w), s.another(t, w)
	const kept = "DO $$ BEGIN ASSERT (SELECT n FROM theirs.things) = 7; END $$"
	for i, clear := range []string{
		`SELECT lo_unlink(oid) FROM pg_largeobject_metadata WHERE lomowner = '%[1]s'::regrole; DROP TABLE things;
			ALTER DEFAULT PRIVILEGES FOR ROLE %[1]s REVOKE SELECT ON TABLES FROM PUBLIC; ALTER TABLE theirs.things OWNER TO CURRENT_USER;
			ALTER SCHEMA theirs OWNER TO CURRENT_USER; ` + kept,
		"REASSIGN OWNED BY %[1]s TO CURRENT_USER; DROP OWNED BY %[1]s; " + kept,
		"DROP OWNED BY %[1]s CASCADE",
	} {
		l := s.settled(t, owner, w.additional(i+1, role.Custom))
		refused(t, "the owner, before the removal", owner, filled(clear, l.username))
		for generation := range int64(2) {
			if found := s.removed(t, l.remove(2+generation)); len(found.List) != 5 {
				t.Errorf("%+v", found)
			}
		}
		s.onlyCeded(t, owner, l, other)
		if _, err := owner.Exec(filled(clear, l.username)); err != nil {
			t.Errorf("the owner: %s: %v", clear, err)
		}
		if found := s.removed(t, l.remove(4)); len(found.List) > 0 {
			t.Errorf("after %s: %+v", clear, found)
		}
		s.gone(t, l)
		check.Must(owner.Exec("DROP SCHEMA IF EXISTS theirs CASCADE; DROP TABLE IF EXISTS things"))(t)
	}
	s.noOrphans(t)
}

// onlyCeded checks that what the owner has of a dead role is no more than the right to its things, and that the role stays dead.
func (s *stack) onlyCeded(t testing.TB, owner *sql.DB, l, other loginOf) {
	t.Helper()
	for _, statement := range []string{
		"SET ROLE %[1]s", "SET SESSION AUTHORIZATION %[1]s", "ALTER ROLE %[1]s LOGIN", "ALTER ROLE %[1]s PASSWORD 'x'",
		"ALTER ROLE %[1]s RENAME TO other", "DROP ROLE %[1]s", fmt.Sprintf("GRANT %%[1]s TO %q", other.username),
		"ALTER SCHEMA public OWNER TO %[1]s",
	} {
		refused(t, "the owner", owner, filled(statement, l.username))
	}
	another := s.pooled(t, l.name, other.username, other.password)
	defer another.Close()
	refused(t, "another login", another, "DROP OWNED BY "+l.username)
	s.getsInNowhere(t, "kept", l)
}
