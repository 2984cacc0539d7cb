package logins_test

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

// What depends on a role in its own database is told in PostgreSQL's words, and stays.
func TestDependenciesOfEveryKindKeepARole(t *testing.T) {
	agenttest.OverModelsWhole(t, testDependenciesOfEveryKindKeepARole)
}

func testDependenciesOfEveryKindKeepARole(t *testing.T, m database.RoleModel) {
	s, w := agenttest.ModelStack(t, m)
	owner := s.Owner(t, w)
	check.Must(owner.Exec("CREATE TABLE things (id int, name text); CREATE SCHEMA theirs"))(t)
	for i, c := range []struct {
		do, undo string // %s is the role
		asRole   bool
		want     role.Dependency
	}{
		{
			"GRANT SELECT ON things TO %s", "REVOKE SELECT ON things FROM %s", false,
			role.Dependency{
				Kind: "grant", ObjectType: "table", Schema: "public", Name: "things", Identity: "public.things", Grantor: w.Name,
			},
		},
		{
			"GRANT UPDATE (name) ON things TO %s", "REVOKE UPDATE (name) ON things FROM %s", false,
			role.Dependency{
				Kind: "grant", ObjectType: "table column", Schema: "public", Name: "things", Identity: "public.things.name",
				Grantor: w.Name,
			},
		},
		{
			"GRANT CREATE, USAGE ON SCHEMA theirs TO %s", "REVOKE ALL ON SCHEMA theirs FROM %s", false,
			role.Dependency{Kind: "grant", ObjectType: "schema", Name: "theirs", Identity: "theirs", Grantor: w.Name},
		},
		{
			"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO %s", "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM %s", false,
			role.Dependency{
				Kind: "grant", ObjectType: "default acl", Name: "for role " + agenttest.Quoted(w.Name) + " on tables",
				Identity: "for role " + agenttest.Quoted(w.Name) + " on tables", Grantor: w.Name,
			},
		},
		{
			"CREATE POLICY few ON things TO %s", "DROP POLICY few ON things", false,
			role.Dependency{
				Kind: "policy", ObjectType: "policy", Schema: "public", Name: "few", Identity: "few on public.things",
			},
		},
		{
			"GRANT TEMPORARY ON DATABASE " + agenttest.Quoted(w.Name) + " TO %s",
			"REVOKE TEMPORARY ON DATABASE " + agenttest.Quoted(w.Name) + " FROM %s", false,
			role.Dependency{
				Kind: "grant", ObjectType: "database", Name: agenttest.Quoted(w.Name), Identity: agenttest.Quoted(w.Name),
				Grantor: w.Name,
			},
		},
		{
			"CREATE TABLE theirs.orders (id int)", "DROP TABLE theirs.orders", true,
			role.Dependency{
				Kind: "owned_object", ObjectType: "table", Schema: "theirs", Name: "orders", Identity: "theirs.orders",
			},
		},
		{
			"CREATE FUNCTION theirs.one(int) RETURNS int RETURN 1", "DROP FUNCTION theirs.one", true,
			role.Dependency{
				Kind: "owned_object", ObjectType: "function", Schema: "theirs", Name: "one", Identity: "theirs.one(integer)",
			},
		},
		{
			"SELECT lo_create(4711)", "SELECT lo_unlink(4711)", true, // it is named by its number, as everywhere in SQL
			role.Dependency{Kind: "owned_object", ObjectType: "large object", Name: "4711", Identity: "4711"},
		},
	} {
		l := s.Opened(t, w.Additional(i+1, role.ReadOnly))
		if c.asRole {
			check.Must(owner.Exec("GRANT USAGE, CREATE ON SCHEMA theirs TO " + l.Username))(t)
			check.Must(s.Direct(t, w.Name, l.Username, l.Password).Exec(c.do))(t)
			check.Must(owner.Exec("REVOKE ALL ON SCHEMA theirs FROM " + l.Username))(t)
		} else {
			check.Must(owner.Exec(filledWith(c.do, l.Username)))(t)
		}
		removal := l.Remove(2)
		found := s.Removed(t, removal)
		if len(found.List) != 1 || found.List[0] != c.want || found.Truncated {
			t.Errorf("%s: %+v, want %+v", c.do, found, c.want)
		}
		s.GetsInNowhere(t, "kept", l)
		s.WantCondition(t, l, command.LoginDrifted)
		undoing := owner
		if c.asRole {
			undoing = agenttest.Open(t, s.PG.URL(w.Name))
		}
		check.Must(undoing.Exec(filledWith(c.undo, l.Username)))(t)
		if again := s.Removed(t, removal); len(again.List) != 1 {
			t.Errorf("the same command has another result: %+v", again)
		}
		if found := s.Removed(t, l.Remove(3)); len(found.List) > 0 {
			t.Errorf("after %s: %+v", c.undo, found)
		}
		s.Gone(t, l)
	}
	check.Must(owner.Exec("TABLE things"))(t)
}

// What a role has granted keeps both roles, also after the owner has taken from them all that DROP OWNED takes: the role could
// pass on the privilege on the whole table, and did so for a column. It is told with its grantor, and the owner can end it.
func TestGrantsOfARevokedRoleCanBeEnded(t *testing.T) {
	s, w := agenttest.ModelStack(t, database.Managed)
	owner := s.Owner(t, w)
	a, b := s.Opened(t, w.Additional(1, role.Custom)), s.Opened(t, w.Additional(2, role.Custom))
	as := func(db *sql.DB, statements ...string) {
		t.Helper()
		for _, statement := range statements {
			check.Must(db.Exec(strings.NewReplacer("%a", a.Username, "%b", b.Username).Replace(statement)))(t)
		}
	}
	as(owner, "CREATE SCHEMA ours", "CREATE TABLE ours.things (id int, name text)",
		"CREATE FUNCTION ours.one() RETURNS int RETURN 1", "CREATE TYPE ours.pair AS (x int)", "CREATE SEQUENCE ours.numbers",
		"SELECT lo_create(815)")
	on := []string{
		"USAGE ON SCHEMA ours", "SELECT ON ours.things", "EXECUTE ON FUNCTION ours.one", "USAGE ON TYPE ours.pair",
		"USAGE ON SEQUENCE ours.numbers", "SELECT ON LARGE OBJECT 815", "TEMPORARY ON DATABASE " + agenttest.Quoted(w.Name),
	}
	direct := s.Direct(t, w.Name, a.Username, a.Password)
	for _, privilege := range on {
		as(owner, "GRANT "+privilege+" TO %a WITH GRANT OPTION")
		as(direct, "GRANT "+privilege+" TO %b")
	}
	as(direct, "GRANT SELECT (id), SELECT (name) ON ours.things TO %b", "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO %b")
	check.NoError(t, direct.Close())
	told := func(l agenttest.LoginOf, attempt int64) (columns int) {
		t.Helper()
		for _, d := range s.Removed(t, l.Remove(attempt)).List {
			byOwner := l.Username == a.Username && d.Grantor == w.Name
			if d.Kind == role.GrantDependency && d.Grantor != a.Username && !byOwner {
				t.Errorf("%s: %+v", l.Username, d)
			}
			if d.ObjectType == "table column" {
				columns++
			}
		}
		return columns
	}
	if n, m := told(a, 2), told(b, 2); n != 2 || m != 2 {
		t.Errorf("%d and %d grants on columns are told with their grantor", n, m)
	}
	as(owner, "DROP OWNED BY %b", "DROP OWNED BY %a")
	for _, l := range []agenttest.LoginOf{a, b} {
		if n := len(s.Removed(t, l.Remove(3)).List); n != 2 {
			t.Errorf("DROP OWNED leaves %d dependencies of %s", n, l.Username)
		}
	}
	as(owner, "REVOKE ALL (id, name) ON ours.things FROM %b")
	if n := told(b, 4); n != 2 {
		t.Errorf("the owner's own revocation leaves %d", n)
	}
	as(owner, "GRANT ALL (id, name) ON ours.things TO %a WITH GRANT OPTION", "REVOKE ALL (id, name) ON ours.things FROM %a CASCADE")
	for i, l := range []agenttest.LoginOf{a, b} {
		if found := s.Removed(t, l.Remove(int64(5+i))); found.Any() {
			t.Errorf("%s: %+v", l.Username, found)
		}
		s.Gone(t, l)
	}
}

func filledWith(statement, role string) string {
	return strings.ReplaceAll(statement, "%s", role)
}

// Databases of the account count, those of others neither count nor are told: anyone can grant to a role whose name they know.
func TestDependenciesInOtherDatabases(t *testing.T) {
	agenttest.OverModelsWhole(t, testDependenciesInOtherDatabases)
}

func testDependenciesInOtherDatabases(t *testing.T, m database.RoleModel) {
	s := agenttest.Shared(t)
	w, sibling, stranger := s.MadeWithRoles(t, m), s.Made(t, database.SingleLogin), s.Made(t, database.SingleLogin)
	l := s.Opened(t, w.Additional(1, role.ReadOnly))
	mine, theirs, oid := s.Owner(t, sibling), s.Owner(t, stranger), oidOf(t, s, l)
	check.Must(mine.Exec("CREATE TABLE bait (); GRANT SELECT ON bait TO " + l.Username))(t)
	check.Must(theirs.Exec("CREATE TABLE bait (); GRANT SELECT ON bait TO " + l.Username))(t)
	check.Must(theirs.Exec(fmt.Sprintf("GRANT CONNECT ON DATABASE %q TO %s", stranger.Name, l.Username)))(t)
	found := s.Removed(t, l.Remove(2, sibling.ID))
	if want := (role.Dependency{
		Kind: "other_database", ObjectType: "table", Schema: "public", Name: "bait",
		Identity: "public.bait in database " + sibling.Name, Grantor: sibling.Name,
	}); len(found.List) != 1 || found.List[0] != want {
		t.Errorf("%+v, want %+v", found, want)
	}
	check.Must(mine.Exec("DROP TABLE bait"))(t)
	if found := s.Removed(t, l.Remove(3, sibling.ID)); len(found.List) > 0 {
		t.Errorf("%+v", found)
	}
	s.Gone(t, l)
	s.NoOrphans(t)
	const dead = `SELECT concat(count(*), bool_or(r.rolcanlogin), count(a.rolpassword), count(m.roleid)) FROM ledger.dead_role d
		JOIN pg_roles r ON r.oid = d.oid JOIN pg_authid a ON a.oid = d.oid LEFT JOIN pg_auth_members m
			ON m.member = d.oid OR m.roleid = d.oid AND m.member <> 'pgherd_agent'::regrole
		WHERE d.oid = $1`
	check.Eventually(t, "the role is not retired, or not stripped", func() bool { return s.One(t, dead, oid) == "1f00" })
	check.Must(theirs.Exec("DROP TABLE bait"))(t) // CONNECT on their database is taken from it without them
	noDead(t, s, oid)
	s.NoOrphans(t)
}
