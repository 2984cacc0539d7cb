package logins_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

var letters = map[role.AccessProfile]string{
	role.ReadOnly: "r", role.ReadWrite: "w", role.Custom: "c",
}

// furnished is a database with a role of each profile, and one thing of each kind made before them and one after.
type furnished struct {
	agenttest.Wanted
	owner *sql.DB
	roles []agenttest.LoginOf
	blob  string // a large object of the owner's
}

func newFurnished(t testing.TB, s *agenttest.Stack, m database.RoleModel) furnished {
	t.Helper()
	f := furnished{Wanted: s.Made(t, m)}
	f.owner = s.Owner(t, f.Wanted)
	check.Must(f.owner.Exec("CREATE SCHEMA before"))(t)
	furnish(t, f.owner, earlyPlaces)
	for _, c := range f.RolesReady() {
		s.Done(t, c)
	}
	for i, profile := range []role.AccessProfile{role.ReadOnly, role.ReadWrite, role.Custom} {
		f.roles = append(f.roles, s.Opened(t, f.Additional(i+1, profile)))
	}
	check.Must(f.owner.Exec("CREATE SCHEMA after"))(t)
	furnish(t, f.owner, latePlaces)
	check.NoError(t, f.owner.QueryRow("SELECT lo_from_bytea(0, 'x')").Scan(&f.blob))
	return f
}

// abilities are all that is tried.
func (f furnished) abilities() []ability {
	all := slices.Clone(databaseAbilities)
	for _, p := range slices.Concat(earlyPlaces, latePlaces) {
		for _, a := range placeAbilities {
			all = append(all, a.at(p))
		}
	}
	return all
}

// Every profile can do in SQL what it is for and nothing else, on whatever stands before it is made or comes later, in every way
// in which it can connect.
func TestProfilesInSQL(t *testing.T) { agenttest.OverModels(t, testProfilesInSQL) }

func testProfilesInSQL(t *testing.T, m database.RoleModel) {
	s := agenttest.Shared(t)
	f := newFurnished(t, s, m)
	before := fingerprint(t, s, f.Wanted)
	n, logins := f.Names(), f.roles
	others := []string{n.Owner, n.Holder, n.ReadGroup, n.WriteGroup, f.roles[0].Username, f.roles[2].Username}
	if m == database.Managed {
		runtime, readonly := f.Present(database.RuntimeLogin), f.Present(database.ReadonlyLogin)
		runtime.Profile, readonly.Profile = role.ReadWrite, role.ReadOnly // they have the same rights
		logins, others = append(logins, runtime, readonly), append(others, n.Runtime, n.Readonly)
	}
	for i, l := range logins {
		for way, db := range s.WaysOf(t, l) {
			if m == database.SingleLogin && way == "direct" && !agenttest.Turn(i, 0, len(logins)) {
				continue // one of them
			}
			what := l.Username + " " + string(l.Profile) + " " + way
			for _, a := range f.abilities() {
				a.statement = agenttest.Filled(a.statement, f.Name, "", l.Username, "", f.blob)
				tried(t, what, db, a, l.Profile)
			}
			for _, statement := range agenttest.ForbiddenHere() {
				agenttest.Denied(t, what, db, agenttest.Filled(statement, f.Name, f.Names().Holder, l.Username, "postgres"))
			}
			for _, other := range others {
				becomesNobody(t, what, db, l, other)
			}
			changesNothing(t, f, db)
		}
	}
	if after := fingerprint(t, s, f.Wanted); after != before {
		t.Errorf("something was changed:\n%s\n%s", before, after)
	}
}

// tried runs a statement that some may, in a transaction that is taken back, and one that nobody may by itself.
func tried(t testing.TB, what string, db *sql.DB, a ability, profile role.AccessProfile) {
	t.Helper()
	if a.who == nobody {
		agenttest.Denied(t, what, db, a.statement)
		return
	}
	tx := check.Must(db.BeginTx(t.Context(), nil))(t)
	_, err := tx.Exec(a.statement)
	if err == nil || !strings.Contains(err.Error(), "COPY") {
		_ = tx.Rollback()
	}
	switch may := a.of(profile); {
	case may && err != nil && agenttest.SQLState(err) != "", !may && agenttest.SQLState(err) != "42501":
		t.Errorf("%s: %s: %v, allowed: %t", what, a.statement, err, may)
	}
}

// becomesNobody demands that a role is no other, and has no power over one.
func becomesNobody(t testing.TB, what string, db *sql.DB, l agenttest.LoginOf, other string) {
	t.Helper()
	if l.Username == other {
		return
	}
	statements := []string{
		"SET ROLE %q", "SET SESSION AUTHORIZATION %q", "GRANT %q TO CURRENT_USER", "ALTER ROLE %q PASSWORD 'x'", "DROP ROLE %q",
		"ALTER ROLE %q SET work_mem = '8MB'", "COMMENT ON ROLE %q IS 'x'",
	}
	// What it owns it may give to its own group, and the group's to itself: that owns nothing.
	if group := map[role.AccessProfile]string{
		role.Custom: "", role.ReadOnly: l.Names().ReadGroup, role.ReadWrite: l.Names().WriteGroup,
	}[l.Profile]; group != other {
		statements = append(statements, "DROP OWNED BY %q", "REASSIGN OWNED BY %q TO CURRENT_USER",
			"REASSIGN OWNED BY CURRENT_USER TO %q")
	}
	for _, statement := range statements {
		agenttest.Denied(t, what, db, fmt.Sprintf(statement, other))
	}
}

// changesNothing sends what PostgreSQL answers with a warning where it does nothing. The fingerprint tells whether it did.
func changesNothing(t testing.TB, f furnished, db *sql.DB) {
	t.Helper()
	for _, p := range slices.Concat(earlyPlaces, latePlaces) {
		for _, statement := range []string{
			"ANALYZE %[1]stab", "VACUUM %[1]stab", "VACUUM FULL %[1]stab", "GRANT SELECT ON %[1]stab TO PUBLIC",
			"GRANT ALL ON %[1]sparts TO PUBLIC",
			"REVOKE ALL ON %[1]stab FROM PUBLIC",
			"GRANT EXECUTE ON FUNCTION %[1]sfn() TO PUBLIC", "GRANT USAGE ON SCHEMA before TO PUBLIC",
			"GRANT CREATE ON SCHEMA public TO CURRENT_USER", "GRANT TEMPORARY ON DATABASE \"%[2]s\" TO CURRENT_USER",
			"GRANT CONNECT ON DATABASE \"%[2]s\" TO PUBLIC", "GRANT USAGE ON LANGUAGE plpgsql TO CURRENT_USER",
			"GRANT UPDATE ON %[1]sseq TO CURRENT_USER",
		} {
			_, _ = db.Exec(agenttest.Filled(statement, p.prefix, f.Name)) // refused, or a warning
		}
	}
}

// fingerprint is all of a database's roles, privileges, objects and statistics that somebody could have changed.
func fingerprint(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) string {
	t.Helper()
	db := agenttest.Open(t, s.PG.URL(w.Name))
	var parts []string
	for _, query := range []string{
		`SELECT c.oid, c.relname, c.relowner, c.relacl, c.relrowsecurity, c.relfilenode, c.reltuples, c.relhastriggers, c.relhasrules
			FROM pg_class c WHERE c.relnamespace::regnamespace::text IN ('public', 'before', 'after') ORDER BY 1`,
		`SELECT attrelid, attname, attacl, atttypid FROM pg_attribute WHERE attrelid > 16383 ORDER BY 1, 2`,
		`SELECT oid, proname, proowner, coalesce(proacl, acldefault('f', proowner)), prosecdef, prosrc
			FROM pg_proc WHERE oid > 16383 ORDER BY 1`,
		`SELECT oid, nspname, nspowner, nspacl FROM pg_namespace WHERE nspname !~ '^pg_t' ORDER BY 1`,
		`SELECT * FROM pg_default_acl ORDER BY oid`, `SELECT * FROM pg_policy ORDER BY oid`,
		`SELECT * FROM pg_largeobject_metadata ORDER BY oid`,
		`SELECT oid, typname, typowner, coalesce(typacl, acldefault('T', typowner)) FROM pg_type WHERE oid > 16383 ORDER BY 1`,
		`SELECT oid, coalesce(lanacl, acldefault('l', lanowner)) FROM pg_language ORDER BY 1`,
		`SELECT oid, datname, datdba, datacl, datconnlimit FROM pg_database WHERE datname = current_database()`,
		`SELECT a.* FROM pg_authid a WHERE rolname ~ '^pgherd|^postgres' OR a.oid IN (SELECT d.refobjid FROM pg_shdepend d)
			AND has_database_privilege(a.oid, current_database(), 'CONNECT') ORDER BY a.oid`,
		`SELECT m.* FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member
			WHERE has_database_privilege(r.oid, current_database(), 'CONNECT') AND (r.rolname !~ '^pgherd' OR m.roleid IN (
				SELECT refobjid FROM pg_shdepend WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
			)) ORDER BY m.oid`, // the agent comes to be a member of other databases' roles meanwhile
	} {
		var sum string
		if err := db.QueryRow("SELECT md5(coalesce(string_agg(x::text, E'\\n'), '')) FROM (" + query + ") x").Scan(&sum); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		parts = append(parts, sum[:8])
	}
	return strings.Join(parts, " ")
}

// A member has the rights of its group, and may so drop what the group owns, which is nothing. PostgreSQL tries to take the
// group's privileges with it, which only their grantor can: what stands stays as it is.
func TestMemberTakesNothingFromItsGroup(t *testing.T) {
	agenttest.OverModels(t, testMemberTakesNothingFromItsGroup)
}

func testMemberTakesNothingFromItsGroup(t *testing.T, m database.RoleModel) {
	s := agenttest.Shared(t)
	f := newFurnished(t, s, m)
	const granted = `SELECT string_agg(concat(oid, relacl), ' ' ORDER BY oid) FROM pg_class WHERE relacl IS NOT NULL AND oid > 16383`
	var before, after string
	check.NoError(t, f.owner.QueryRow(granted).Scan(&before))
	for _, l := range f.roles[:2] {
		group := map[role.AccessProfile]string{
			role.Custom: "", role.ReadOnly: f.Names().ReadGroup, role.ReadWrite: f.Names().WriteGroup,
		}[l.Profile]
		_, _ = s.Pooled(t, l.Name, l.Username, l.Password).Exec(fmt.Sprintf("DROP OWNED BY %q CASCADE", group))
	}
	if err := f.owner.QueryRow(granted).Scan(&after); err != nil || after != before {
		t.Errorf("%v\n%s\n%s", err, before, after)
	}
	for _, l := range f.roles[:2] {
		check.Must(s.Pooled(t, f.Name, l.Username, l.Password).Exec("TABLE before.early_tab"))(t)
	}
}
