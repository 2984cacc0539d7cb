package overlay_test

import (
	"database/sql"
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

// singleStack is the shared stack with a database that has a single login, and the owner's connection to it.
func singleStack(t testing.TB) (*agenttest.Stack, agenttest.Wanted, *sql.DB) {
	t.Helper()
	s := agenttest.Shared(t)
	w := s.Made(t, database.SingleLogin)
	return s, w, s.Owner(t, w)
}

// variety is what an owner may have made of a database. %[1]s is its login, %[2]s its holder.
var variety = []string{
	`CREATE SCHEMA "An odd ""schema";
		CREATE TABLE "An odd ""schema"."an odd 'table" (id serial, n int GENERATED ALWAYS AS IDENTITY)`,
	"CREATE SCHEMA parts; CREATE TABLE parts.p (a int, b int) PARTITION BY LIST (a)",
	"CREATE TABLE parts.p1 PARTITION OF parts.p FOR VALUES IN (1) PARTITION BY LIST (b)",
	"CREATE TABLE parts.p11 PARTITION OF parts.p1 DEFAULT",
	"CREATE TABLE parts.parent (a text); CREATE TABLE parts.heir (b int) INHERITS (parts.parent); CREATE UNLOGGED TABLE parts.u ()",
	"CREATE TABLE tuned (id int PRIMARY KEY, t text) WITH (fillfactor = 70, toast.autovacuum_enabled = off)",
	"CREATE VIEW checked WITH (security_barrier) AS SELECT id FROM tuned WHERE id > 0 WITH CHECK OPTION",
	"CREATE VIEW counted AS SELECT count(*) FROM tuned; CREATE MATERIALIZED VIEW mat WITH (fillfactor = 80) AS TABLE tuned",
	"CREATE SEQUENCE loose; CREATE SEQUENCE tied OWNED BY tuned.id; CREATE TEMP TABLE passing ()",
	"CREATE TABLE mine (id int); REVOKE ALL ON mine FROM CURRENT_USER; GRANT SELECT ON mine TO PUBLIC",
	"CREATE TABLE read_only (id serial); REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON read_only FROM CURRENT_USER",
	"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC; ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
	"ALTER DEFAULT PRIVILEGES REVOKE TRUNCATE ON TABLES FROM CURRENT_USER",
	`CREATE SCHEMA closed CREATE TABLE one (id serial, n int) CREATE VIEW all_of_it AS SELECT 1 AS id;
		GRANT USAGE ON SCHEMA closed TO postgres WITH GRANT OPTION; GRANT CREATE ON SCHEMA closed TO PUBLIC`,
	"CREATE SEQUENCE closed.loose; CREATE MATERIALIZED VIEW closed.mat AS SELECT 1; REVOKE USAGE ON SCHEMA closed FROM CURRENT_USER",
	"ALTER DEFAULT PRIVILEGES IN SCHEMA parts GRANT INSERT ON TABLES TO PUBLIC",
	"ALTER ROLE CURRENT_USER SET search_path = parts, public; ALTER ROLE CURRENT_USER SET work_mem = '8MB'",
	// Whoever looks for a function of its own first finds this one of the customer's.
	`CREATE FUNCTION public.trap(text[], text[]) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
		CREATE OPERATOR public.<@ (LEFTARG = text[], RIGHTARG = text[], FUNCTION = public.trap)`,
}

// publics are what may have become of the schema public.
var publics = map[string]string{
	"as it was": "", "revoked": "REVOKE ALL ON SCHEMA public FROM PUBLIC, CURRENT_USER",
	"renamed": "ALTER SCHEMA public RENAME TO private", "dropped": "DROP SCHEMA public CASCADE",
	"another's":       "ALTER SCHEMA public OWNER TO postgres",
	"another's alone": "ALTER SCHEMA public OWNER TO postgres; REVOKE ALL ON SCHEMA public FROM PUBLIC",
}

// others lists the privileges in an ACL that roles beside the groups have.
func others(acl, kind, owner string) string {
	return fmt.Sprintf(`(SELECT string_agg(a::text, ',' ORDER BY a::text) FROM aclexplode(coalesce(%s, acldefault(%s, %s))) a
		WHERE a.grantee NOT IN (SELECT oid FROM pg_roles WHERE rolname ~ '_gr[ow]$'))`, acl, kind, owner)
}

// standing is all in a database that an opt-in could have changed beside the groups' rights. $1 is the owner.
var standing = `SELECT string_agg(line, E'\n' ORDER BY line) FROM (
	SELECT concat_ws(' ', c.oid::regclass, c.reloptions, c.relfilenode, c.relowner, c.relrowsecurity, ` +
	others("c.relacl", `CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char"`, "c.relowner") + `) AS line
		FROM pg_class c WHERE c.oid >= 16384 AND c.relpersistence <> 't' AND c.relkind <> 't'
	UNION ALL SELECT concat_ws(' ', n.nspname, n.nspowner, ` + others("n.nspacl", "'n'", "n.nspowner") + `)
		FROM pg_namespace n WHERE n.nspname !~ '^pg_t'
	UNION ALL SELECT concat_ws(' ', s.setrole, s.setconfig) FROM pg_db_role_setting s WHERE s.setrole = $1::regrole
	UNION ALL SELECT concat_ws(' ', r.*) FROM pg_roles r WHERE r.oid = $1::regrole
	UNION ALL SELECT concat_ws(' ', m.*) FROM pg_auth_members m WHERE m.member = $1::regrole OR m.roleid = $1::regrole) every`

// lacked names what the owner, $1, has and the groups, $2 and $3, may not use as their members are promised. Nothing is promised
// of what is in a schema of another's that the owner may not use.
const lacked = `WITH theirs AS (SELECT oid FROM pg_namespace
		WHERE nspowner <> $1::regrole AND NOT has_schema_privilege($1::regrole, oid, 'USAGE'))
	SELECT coalesce(string_agg(name, ' '), '') FROM (
	SELECT n.nspname AS name FROM pg_namespace n WHERE n.nspowner = $1::regrole
		AND NOT (has_schema_privilege($2, n.oid, 'USAGE') AND has_schema_privilege($3, n.oid, 'USAGE'))
	UNION ALL SELECT c.relname FROM pg_class c WHERE c.relowner = $1::regrole AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
		AND c.relnamespace NOT IN (TABLE theirs) AND c.relpersistence <> 't'
		AND NOT (has_table_privilege($2, c.oid, 'SELECT') AND has_table_privilege($3, c.oid, 'SELECT')
			AND has_table_privilege($3, c.oid, 'INSERT') AND has_table_privilege($3, c.oid, 'UPDATE')
			AND has_table_privilege($3, c.oid, 'DELETE'))
	UNION ALL SELECT c.relname FROM pg_class c WHERE c.relowner = $1::regrole AND c.relkind = 'S' AND c.relpersistence <> 't'
		AND c.relnamespace NOT IN (TABLE theirs)
		AND NOT (has_sequence_privilege($2, c.oid, 'SELECT') AND has_sequence_privilege($3, c.oid, 'SELECT')
			AND has_sequence_privilege($3, c.oid, 'USAGE')) LIMIT 20) every`

// lacks is what lacked names in a database.
func lacks(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) string {
	t.Helper()
	n := w.Names()
	return oneIn(t, s, w, lacked, fmt.Sprintf("%q", n.Owner), n.ReadGroup, n.WriteGroup)
}

// nothingLacks demands that the groups have all their rights.
func nothingLacks(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) {
	t.Helper()
	if names := lacks(t, s, w); names != "" {
		t.Errorf("the groups lack rights on %s", names)
	}
}

// anew makes one thing of each kind, and says what others have of it; of a type, which nothing is promised of, all have it.
func anew(t testing.TB, db *sql.DB, name string) (acls string) {
	t.Helper()
	check.Must(db.Exec(fmt.Sprintf(`CREATE SCHEMA %[1]s; CREATE TABLE %[1]s.x (id int); CREATE TABLE parts.%[1]s (id int);
		CREATE SEQUENCE %[1]s.s; CREATE FUNCTION %[1]s.f() RETURNS int RETURN 1; CREATE TYPE %[1]s.t AS ENUM ()`, name)))(t)
	query := fmt.Sprintf(`SELECT string_agg(concat(acl), E'\n' ORDER BY nr) FROM (
		SELECT 1, %[2]s FROM pg_class c WHERE oid = '%[1]s.x'::regclass
		UNION ALL SELECT 2, %[2]s FROM pg_class c WHERE oid = 'parts.%[1]s'::regclass
		UNION ALL SELECT 3, %[3]s FROM pg_class c WHERE oid = '%[1]s.s'::regclass
		UNION ALL SELECT 4, %[4]s FROM pg_namespace n WHERE nspname = '%[1]s'
		UNION ALL SELECT 5, %[5]s FROM pg_proc p WHERE oid = '%[1]s.f'::regproc
		UNION ALL SELECT 6, typacl::text FROM pg_type WHERE oid = '%[1]s.t'::regtype) every (nr, acl)`, name,
		others("relacl", "'r'", "relowner"), others("relacl", "'s'", "relowner"), others("nspacl", "'n'", "nspowner"),
		others("proacl", "'f'", "proowner"))
	check.NoError(t, db.QueryRow(query).Scan(&acls), query)
	return acls
}

// notWhole takes the marks of its groups from a database, so that the next opt-in has all to do again.
func notWhole(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) {
	t.Helper()
	db := s.SuperIn(t, w)
	n := w.Names()
	check.Must(db.Exec(fmt.Sprintf("ALTER DEFAULT PRIVILEGES FOR ROLE %s REVOKE USAGE ON TYPES FROM %s, %s", n.Holder,
		n.ReadGroup, n.WriteGroup)))(t)
	check.NoError(t, db.Close()) // nobody can move the database meanwhile
}

// An opt-in reaches all that the owner has, and all that it makes later, and leaves everything else as it was.
func TestOptInReachesAllAndLeavesTheOwnerAlone(t *testing.T) {
	for public, change := range publics {
		t.Run(public, func(t *testing.T) {
			s, w, owner := singleStack(t)
			for _, statement := range variety {
				check.Must(owner.Exec(statement))(t)
			}
			super := s.SuperIn(t, w)
			check.Must(super.Exec(fmt.Sprintf(`CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
				CREATE FOREIGN TABLE parts.far (id int) SERVER nowhere; ALTER TABLE parts.far OWNER TO %q;
				CREATE TABLE parts.administrators ()`, w.Name)))(t)
			changes := owner
			if strings.HasPrefix(public, "another's") {
				changes = super
			}
			check.Must(changes.Exec(change))(t)
			session := check.Must(s.PooledOwner(t, w).BeginTx(t.Context(), nil))(t)
			check.Must(session.Exec("SELECT FROM parts.p; DECLARE c CURSOR FOR TABLE parts.parent"))(t)
			later := anew(t, owner, "before")
			var before, after string
			check.NoError(t, super.QueryRow(standing, fmt.Sprintf("%q", w.Name)).Scan(&before))

			s.DoneInTheEnd(t, w.OptIn())
			check.NoError(t, super.QueryRow(standing, fmt.Sprintf("%q", w.Name)).Scan(&after))
			if diff := cmp.Diff(before, after); diff != "" {
				t.Error(diff)
			}
			check.Must(session.Exec("FETCH c; INSERT INTO parts.p VALUES (1, 2)"))(t)
			check.NoError(t, session.Commit())
			if diff := cmp.Diff(later, anew(t, owner, "after")); diff != "" {
				t.Errorf("what comes later is otherwise: %s", diff)
			}
			nothingLacks(t, s, w)
			n := w.Names()
			for _, change := range []string{"GRANT USAGE ON TYPES TO PUBLIC", "REVOKE USAGE ON TYPES FROM " + n.ReadGroup} {
				agenttest.Denied(t, "the owner", owner, "ALTER DEFAULT PRIVILEGES FOR ROLE "+n.Holder+" "+change)
			}
			const theirs = "SELECT has_table_privilege($1, oid, 'SELECT') FROM pg_class WHERE relname = 'administrators'"
			if oneIn(t, s, w, theirs, n.WriteGroup) != "false" {
				t.Error("the groups have rights on what is not the owner's")
			}
		})
	}
}

func oneIn(t testing.TB, s *agenttest.Stack, w agenttest.Wanted, query string, args ...any) (text string) {
	t.Helper()
	db := s.SuperIn(t, w)
	check.NoError(t, db.QueryRow(query, args...).Scan(&text), query)
	check.NoError(t, db.Close()) // nobody can move the database meanwhile
	return text
}

// groupsOf counts the group roles of a database with their rows.
func groupsOf(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) string {
	t.Helper()
	n := w.Names()
	return s.One(t, `SELECT concat((SELECT count(*) FROM pg_roles WHERE rolname IN ($1, $2)), ' roles, ',
		(SELECT count(*) FROM ledger.role WHERE name IN ($1, $2)), ' rows')`, n.ReadGroup, n.WriteGroup)
}

// A group that an administrator has dropped is made again, with its rights and its members, and the other one keeps what it has.
// A role whose row is gone is nobody's any more.
func TestOptInAgainAfterAnAdministrator(t *testing.T) {
	groups := map[role.AccessProfile]func(database.Names) (lost, other string){
		role.ReadOnly:  func(n database.Names) (lost, other string) { return n.ReadGroup, n.WriteGroup },
		role.ReadWrite: func(n database.Names) (lost, other string) { return n.WriteGroup, n.ReadGroup },
	}
	for profile, of := range groups {
		t.Run(string(profile), func(t *testing.T) {
			s, w, owner := singleStack(t)
			lost, other := of(w.Names())
			check.Must(owner.Exec("CREATE TABLE t (id serial)"))(t)
			s.DoneInTheEnd(t, w.OptIn())
			member := s.Opened(t, w.Additional(1, profile))
			check.Must(owner.Exec("CREATE TABLE hidden (); REVOKE ALL ON hidden FROM " + other))(t)
			drop := func() {
				t.Helper()
				check.Must(s.SuperIn(t, w).Exec(fmt.Sprintf("DROP OWNED BY %[1]s; DROP ROLE %[1]s", lost)))(t)
			}
			drop()
			s.RefusedFor(t, command.ReasonInvalid, w.Additional(2, role.ReadOnly).Prepare(1))
			again := w.OptIn()
			for i := range 2 {
				s.DoneInTheEnd(t, again)
				check.Must(owner.Exec(fmt.Sprintf("CREATE SCHEMA later%d CREATE TABLE t (id serial)", i)))(t)
				if names := lacks(t, s, w); names != "hidden" {
					t.Errorf("the groups lack rights on %q", names)
				}
				if got := groupsOf(t, s, w); got != "2 roles, 2 rows" {
					t.Error(got)
				}
			}
			members := s.Pooled(t, w.Name, member.Username, member.Password)
			check.Must(members.Exec("TABLE t; TABLE later0.t; TABLE hidden"))(t)
			agenttest.Denied(t, "a member", members, "SET ROLE "+lost)
			check.Must(s.Super.Exec("DELETE FROM ledger.role WHERE name = $1", lost))(t)
			s.RefusedFor(t, command.ReasonNameTaken, w.OptIn())
			drop()
			s.DoneInTheEnd(t, w.OptIn())
			check.Must(members.Exec("TABLE t"))(t)
		})
	}
}

// A restore leaves an overlay whole: what is in a backup from before the opt-in has the groups' rights too.
func TestRestoreKeepsTheOverlay(t *testing.T) {
	t.Parallel()
	s, w, owner := singleStack(t)
	check.Must(owner.Exec(`CREATE SCHEMA app CREATE TABLE t (id serial); INSERT INTO app.t DEFAULT VALUES;
		CREATE TABLE "public thing" (id serial); CREATE TABLE mine (); REVOKE ALL ON mine FROM CURRENT_USER`))(t)
	s.Saved(t, w)
	s.DoneInTheEnd(t, w.OptIn())
	reader, writer := s.Opened(t, w.Additional(1, role.ReadOnly)), s.Opened(t, w.Additional(2, role.ReadWrite))
	check.Must(owner.Exec("DROP SCHEMA app CASCADE"))(t)
	tx := check.Must(owner.BeginTx(t.Context(), nil))(t) // customers' transactions do not keep it waiting
	check.Must(tx.Exec("CREATE TABLE lost ()"))(t)
	operation := agenttest.NewUUID()
	s.Ready(t, w, operation)
	s.Done(t, w.Switching(operation))
	if tx.Commit() == nil {
		t.Error("a transaction outlives the switch")
	}
	s.Discarded(t, w, operation)
	check.Must(s.Owner(t, w).Exec("CREATE SCHEMA later CREATE TABLE t (id serial)"))(t)
	nothingLacks(t, s, w)
	for _, schema := range []string{"app", "later"} {
		check.Must(s.Pooled(t, w.Name, reader.Username, reader.Password).Exec("TABLE " + schema + ".t"))(t)
		check.Must(s.Pooled(t, w.Name, writer.Username, writer.Password).Exec("INSERT INTO " + schema + ".t DEFAULT VALUES"))(t)
	}
	agenttest.Denied(t, "the reader", s.Pooled(t, w.Name, reader.Username, reader.Password), "INSERT INTO app.t DEFAULT VALUES")
}

// A backup from the middle of an opt-in does not look whole: its restore gives what was left.
func TestRestoreFromTheMiddleOfAnOptIn(t *testing.T) {
	t.Parallel()
	s, w, owner := singleStack(t)
	check.Must(owner.Exec("CREATE TABLE a (id serial); CREATE TABLE b (id serial)"))(t)
	tx := check.Must(owner.BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("LOCK TABLE b IN SHARE UPDATE EXCLUSIVE MODE"))(t)
	opted := w.OptIn()
	s.RefusedFor(t, command.ReasonUnfinished, opted)
	s.Saved(t, w)
	check.NoError(t, tx.Commit())
	s.DoneInTheEnd(t, opted)
	operation := agenttest.NewUUID()
	s.Ready(t, w, operation)
	s.Done(t, w.Switching(operation))
	s.Discarded(t, w, operation)
	nothingLacks(t, s, w)
}

// A database that is stopped, taken out of service or purged while an opt-in is at work leaves nothing of it.
func TestOptInOfADatabaseThatGoes(t *testing.T) {
	t.Parallel()
	s, w, owner := singleStack(t)
	check.Must(owner.Exec("CREATE TABLE t ()"))(t)
	tx := check.Must(owner.BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("LOCK TABLE t"))(t)
	opted := w.OptIn()
	outcome := make(chan string, 1)
	go func() {
		_, reason, err := s.Send(opted)
		outcome <- fmt.Sprint(reason, err)
	}()
	check.Eventually(t, "no group is made", func() bool { return groupsOf(t, s, w) == "2 roles, 2 rows" })
	s.Done(t, w.Access(2, false, true)) // ends the transaction: a stopped database has its overlay made
	if got := <-outcome; got != "<nil>" && !agenttest.IsForLater(got) {
		t.Error(got)
	}
	s.DoneInTheEnd(t, opted)
	nothingLacks(t, s, w)

	s.Done(t, w.Access(3, true, false))
	tx = check.Must(s.Owner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("CREATE TABLE u (); LOCK TABLE t; REVOKE ALL ON t FROM " + w.Names().ReadGroup))(t)
	check.NoError(t, tx.Commit())
	notWhole(t, s, w)
	tx = check.Must(s.Owner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("LOCK TABLE t"))(t)
	go func() {
		_, reason, err := s.Send(w.OptIn())
		outcome <- fmt.Sprint(reason, err)
	}()
	operation := s.Deleted(t, w, 4)
	if got := <-outcome; got != "<nil>" && !strings.HasPrefix(got, string(command.ReasonIsolated)) && !agenttest.IsForLater(got) {
		t.Error(got)
	}
	s.RefusedFor(t, command.ReasonIsolated, w.OptIn())
	s.Done(t, w.Purging(operation))
	s.RefusedFor(t, command.ReasonNotFound, w.OptIn())
	s.NoTrace(t, w)
}
