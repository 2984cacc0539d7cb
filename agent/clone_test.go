package agent_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// cloning is a database that one operation makes as another one is.
type cloning struct {
	*agenttest.Stack
	source, clone agenttest.Wanted
}

func cloningOf(s *agenttest.Stack, source agenttest.Wanted) cloning {
	return cloning{s, source, agenttest.Want(source.Model)}
}

const passingName = "20260301_120001.sql.gz"

// ensure makes the database of the clone, closed and empty.
func (c cloning) ensure() protocol.Command {
	closed := command.EnsureDatabase{
		DatabaseID: c.clone.DatabaseID(), Name: c.clone.Name, RoleModel: c.clone.Model, ConnectionCap: c.clone.Cap, Closed: true,
		BackupKey: agenttest.BackupKey,
	}
	for _, l := range c.clone.Model.Logins() {
		closed.Logins = append(closed.Logins, command.Login{
			Login: l, Username: c.clone.Names().Of(l), Verifier: c.clone.Verifiers[l],
		})
	}
	return agenttest.Told(c.clone.Operation, 1, closed)
}

func (c cloning) dump() protocol.Command {
	return agenttest.Told(c.clone.Operation, 1, command.Backup{
		DatabaseID: c.source.DatabaseID(), Filename: backup.Filename(passingName), Passing: true,
	})
}

func (c cloning) load() protocol.Command {
	return agenttest.Told(c.clone.Operation, 1, command.Load{
		DatabaseID: c.clone.DatabaseID(), Names: c.renamings(), Compare: true,
		Source: command.Source{DatabaseID: c.source.DatabaseID(), Filename: backup.Filename(passingName), Passing: true},
	})
}

func (c cloning) renamings() []command.Renaming {
	return clone.Names(c.source.Record(), c.clone.Record())
}

// proving is the command that proves the log-in of the clone's owner.
func (c cloning) proving() protocol.Command { return c.clone.Create() }

func (c cloning) switching() protocol.Command { return c.clone.Switching(c.clone.Operation) }

// loaded has everything done up to the switch, and returns what the copy lacks.
func (c cloning) loaded(t testing.TB) (notes []string) {
	t.Helper()
	c.Done(t, c.ensure())
	c.WantBackup(t, c.dump(), command.BackupDone, "")
	report := c.Stack.Loaded(t, c.load())
	if report.State != command.LoadReady {
		t.Fatalf("%+v", report)
	}
	return report.Notes
}

// switched has the rest done. Nothing is left of the operation but the clone.
func (c cloning) switched(t testing.TB) {
	t.Helper()
	c.Done(t, c.switching())
	c.Discarded(t, c.clone, c.clone.Operation)
	c.noPassingFile(t)
	c.Done(t, c.proving())
}

// isShut demands that nobody gets into the clone, by whatever way, and that each of the obstacles stands by itself.
func (c cloning) isShut(t testing.TB, when string) {
	t.Helper()
	const open = `SELECT concat_ws(', ', (SELECT 'the database' FROM ledger.database WHERE id = $1 AND open),
		(SELECT 'gates' FROM pooler.gate WHERE database = $2 AND open LIMIT 1),
		(SELECT 'logins' FROM ledger.role l JOIN pg_roles r ON r.oid = l.oid WHERE l.database_id = $1 AND r.rolcanlogin LIMIT 1))`
	if found := c.One(t, open, c.clone.ID, c.clone.Name); found != "" {
		t.Errorf("%s, open are %s", when, found)
	}
	for _, l := range c.clone.Model.Logins() {
		c.GetsInNowhere(t, when, c.clone.Present(l))
	}
}

func (c cloning) passingFiles(t testing.TB) []string {
	t.Helper()
	stem := strings.TrimSuffix(passingName, ".sql.gz")
	return check.Must(filepath.Glob(filepath.Join(c.Config.BackupDir, "passing", c.source.ID, stem+"*")))(t)
}

func (c cloning) noPassingFile(t testing.TB) {
	t.Helper()
	if files := c.passingFiles(t); len(files) > 0 {
		t.Errorf("the file that the clone was made from is left: %v", files)
	}
}

// renamed is text with the names that the source's roles have in the clone.
func (c cloning) renamed(text string) string {
	var pairs []string
	for _, n := range c.renamings() {
		pairs = append(pairs, n.From, n.To)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// sorted are the entries of a dump. Some kinds are in the order of names of roles.
func sorted(dump string) []string { return slices.Sorted(strings.SplitSeq(dump, "\n--\n-- ")) }

// everyClause has what refers to roles, in every way. %[1]s is the owner and the database, %[2]s another login.
const everyClause = `
	CREATE TABLE things (id serial PRIMARY KEY, name text, mine text DEFAULT current_user);
	INSERT INTO things (name, mine) SELECT 'thing ' || n, '' FROM generate_series(1, 300) n;
	GRANT SELECT (name), UPDATE (name) ON things TO %[2]q WITH GRANT OPTION; GRANT TRIGGER ON things TO PUBLIC;
	REVOKE TRUNCATE ON things FROM %[1]q; GRANT USAGE ON SEQUENCE things_id_seq TO %[2]q;
	CREATE FUNCTION double(n int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 2 * n'; REVOKE ALL ON FUNCTION double FROM PUBLIC;
	GRANT EXECUTE ON FUNCTION double TO %[2]q WITH GRANT OPTION;
	CREATE TYPE mood AS ENUM ('good'); REVOKE USAGE ON TYPE mood FROM PUBLIC; GRANT USAGE ON TYPE mood TO %[2]q;
	CREATE VIEW names WITH (security_barrier) AS SELECT name FROM things; CREATE MATERIALIZED VIEW n AS SELECT count(*) FROM things;
	CREATE SCHEMA inner_one; GRANT USAGE, CREATE ON SCHEMA inner_one TO %[2]q; GRANT CREATE ON SCHEMA public TO %[2]q;
	ALTER TABLE things ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	CREATE POLICY everybody ON things USING (true);
	CREATE POLICY few ON things AS RESTRICTIVE FOR UPDATE TO %[2]q, %[1]q USING (id > 1) WITH CHECK (name <> '');
	CREATE POLICY adds ON things AS PERMISSIVE FOR INSERT TO %[2]q WITH CHECK (mine = current_user);
	CREATE POLICY removes ON things FOR DELETE TO CURRENT_USER USING (id > 2); CREATE POLICY sees ON things FOR SELECT USING (true);
	COMMENT ON POLICY few ON things IS 'few'; COMMENT ON TABLE things IS 'of all kinds'; COMMENT ON SCHEMA inner_one IS 'within';
	ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO %[2]q WITH GRANT OPTION;
	ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; ALTER DEFAULT PRIVILEGES GRANT USAGE ON TYPES TO %[2]q;
	ALTER DEFAULT PRIVILEGES IN SCHEMA inner_one GRANT SELECT, INSERT ON TABLES TO %[2]q WITH GRANT OPTION;
	ALTER DEFAULT PRIVILEGES IN SCHEMA inner_one GRANT USAGE ON SEQUENCES TO PUBLIC;
	ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO %[2]q;
	SELECT lo_from_bytea(4711, 'large'), lo_from_bytea(4712, 'too'), lo_from_bytea(4713, 'mine');
	GRANT SELECT, UPDATE ON LARGE OBJECT 4711 TO %[2]q WITH GRANT OPTION; GRANT SELECT ON LARGE OBJECT 4712 TO PUBLIC;
	REVOKE UPDATE ON LARGE OBJECT 4713 FROM %[1]q; COMMENT ON LARGE OBJECT 4711 IS 'large';
	CREATE EXTENSION citext; CREATE EXTENSION pg_trgm SCHEMA inner_one; CREATE DOMAIN named AS citext CHECK (VALUE <> '');
	GRANT USAGE ON TYPE named TO %[2]q WITH GRANT OPTION; COMMENT ON DOMAIN named IS 'with a name';
	CREATE PROCEDURE nothing(INOUT n int, VARIADIC list text[]) LANGUAGE sql AS 'SELECT 1'; GRANT ALL ON PROCEDURE nothing TO %[2]q;
	CREATE AGGREGATE total(int) (sfunc = int4pl, stype = int); REVOKE ALL ON FUNCTION total(int) FROM PUBLIC;
	GRANT EXECUTE ON FUNCTION total(int) TO %[2]q; CREATE OPERATOR ## (leftarg = int, rightarg = int, function = int4pl);
	CREATE TEXT SEARCH CONFIGURATION inner_one.words (COPY = simple); CREATE COLLATION inner_one.c (provider = libc, locale = 'C');
	CREATE TABLE parts (id int, at date) PARTITION BY RANGE (at); CREATE TABLE parts_1 PARTITION OF parts DEFAULT;
	GRANT INSERT ON parts TO %[2]q; GRANT ALL ON parts_1 TO %[2]q WITH GRANT OPTION;
	CREATE PUBLICATION changes FOR TABLE things (id) WHERE (id > 3); CREATE STATISTICS s ON id, name FROM things;`

// ofLogin is made by a login that is not the owner.
const ofLogin = `CREATE TABLE inner_one.its_own (id int); GRANT SELECT ON inner_one.its_own TO PUBLIC;
	GRANT UPDATE (name) ON things TO PUBLIC; GRANT EXECUTE ON FUNCTION double TO PUBLIC;
	ALTER DEFAULT PRIVILEGES IN SCHEMA inner_one GRANT SELECT ON TABLES TO PUBLIC; SELECT lo_from_bytea(4714, 'its own');
	GRANT SELECT ON LARGE OBJECT 4711 TO PUBLIC`

// The clone is the source, with the clone's names for the roles; and the source is as it was.
func TestAClone(t *testing.T) {
	t.Parallel()
	s := agenttest.Shared(t)
	for _, model := range []database.RoleModel{database.Managed, database.SingleLogin} {
		t.Run(string(model), func(t *testing.T) {
			c := cloningOf(s, s.Made(t, model))
			s.Saved(t, c.source)
			other := c.source.Name
			if model == database.Managed {
				other = c.source.Names().Runtime
			}
			check.Must(s.Owner(t, c.source).Exec(fmt.Sprintf(everyClause, c.source.Name, other)))(t)
			if model == database.Managed {
				name, password := c.source.Login(database.RuntimeLogin)
				check.Must(s.Direct(t, c.source.Name, name, password).Exec(ofLogin))(t)
			}
			sessions := s.Connected(t, c.source)
			before, dump := c.stateOf(t, c.source), s.Dumped(t, c.source)

			if notes := c.loaded(t); len(notes) > 0 {
				t.Errorf("notes: %v", notes)
			}
			c.isShut(t, "before the switch")
			s.RefusedFor(t, command.ReasonFailed, c.proving())
			c.isShut(t, "after a proof before the switch")
			whole := s.WholeOf(t, c.clone)
			c.switched(t)

			if diff := cmp.Diff(sorted(c.renamed(dump)), sorted(s.Dumped(t, c.clone))); diff != "" {
				t.Error(diff)
			}
			if now := s.WholeOf(t, c.clone); now != whole {
				t.Errorf("the database as a whole:\n%s\nas it was made:\n%s", now, whole)
			}
			for _, l := range model.Logins() {
				s.GetsIn(t, "the clone", c.clone.Present(l))
			}
			s.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(c.clone.Operation))
			if now := c.stateOf(t, c.source); now != before {
				t.Errorf("the source is now\n%s\nand was\n%s", now, before)
			}
			for _, conn := range sessions {
				check.Must(conn.ExecContext(t.Context(), "SELECT 1"))(t)
			}
			s.Keeps(t, c.source, agenttest.BackupName)
		})
	}
}

// stateOf is what customers and operators see of a database.
func (c cloning) stateOf(t testing.TB, w agenttest.Wanted) string {
	t.Helper()
	return c.One(t, `SELECT concat_ws(E'\n', (SELECT row_to_json(d) FROM ledger.database d WHERE id = $1),
		(SELECT string_agg(row_to_json(g)::text, E'\n' ORDER BY login) FROM pooler.gate g WHERE g.database = $2),
		(SELECT string_agg(r.rolname || r.rolcanlogin || r.rolconfig::text || r.rolvaliduntil, E'\n' ORDER BY r.oid)
			FROM pg_roles r JOIN ledger.role l ON l.oid = r.oid AND l.database_id = $1))`, w.ID, w.Name) + "\n" + c.WholeOf(t, w)
}

// Who is no role of the clone gets nothing in it: neither the source's additional roles, nor another account's, nor PostgreSQL's
// own, nor the clone's under the names that they have in the source. What was theirs is the owner's.
func TestACloneHasNoOtherRoles(t *testing.T) {
	t.Parallel()
	s, source := agenttest.DatabaseStack(t)
	first, second := s.Opened(t, source.Additional(1, role.Custom)), s.Opened(t, source.Additional(2, role.ReadWrite))
	stranger := s.Made(t, database.SingleLogin)
	check.Must(s.Owner(t, source).Exec(fmt.Sprintf(agenttest.Furnishing, source.Name, first.Username, second.Username)))(t)
	check.Must(s.Owner(t, source).Exec(fmt.Sprintf(`GRANT SELECT ON things TO %[1]q, pg_monitor;
		GRANT USAGE ON SCHEMA public TO %[1]q;
		CREATE POLICY mixed ON things TO %[1]q, %[2]q, pg_monitor USING (true); CREATE POLICY theirs ON things TO %[1]q USING (true);
		ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO %[1]q; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO %[3]q;
		GRANT SELECT ON LARGE OBJECT 4711 TO %[1]q WITH GRANT OPTION; UPDATE things SET mine = ''`,
		stranger.Name, source.Names().Runtime, first.Username)))(t)
	of := s.Direct(t, source.Name, first.Username, first.Password)
	check.Must(of.Exec(fmt.Sprintf(`CREATE TABLE of_role (id int); GRANT SELECT ON of_role TO %q, %q; SELECT lo_from_bytea(4715, '');
		GRANT SELECT (name) ON things TO %[1]q; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO %[1]q`,
		source.Names().Runtime, stranger.Name)))(t)
	c := cloningOf(s, source)
	s.Done(t, c.ensure())
	check.Must(s.Owner(t, source).Exec(fmt.Sprintf(`GRANT TRIGGER ON things TO %[1]s;
		ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO %[1]s;
		CREATE POLICY claims ON things TO %[1]s USING (true)`, c.clone.Names().Runtime)))(t)
	notes := c.loaded(t)
	want := []string{"claims ON public.things", "few ON public.things", "theirs ON public.things"}
	if len(notes) != len(want) || slices.ContainsFunc(want, func(policy string) bool {
		return !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, policy) })
	}) {
		t.Errorf("notes: %q, want %q", notes, want)
	}
	c.switched(t)
	s.WantOwnersTable(t, c.clone)
	const foreign = `SELECT coalesce(string_agg(DISTINCT pg_get_userbyid(d.refobjid), ' '), '') FROM pg_shdepend d
		WHERE d.dbid = (SELECT oid FROM pg_database WHERE datname = $1) AND d.refclassid = 'pg_authid'::regclass
		AND NOT EXISTS (SELECT FROM ledger.role l WHERE l.oid = d.refobjid AND l.database_id = $2)`
	if roles := s.One(t, foreign, c.clone.Name, c.clone.ID); roles != "" {
		t.Errorf("in the clone, %s have something", roles)
	}
	dump := s.Dumped(t, c.clone)
	for _, name := range []string{source.Name, agenttest.Compact(source.ID), stranger.Name, "pg_monitor", "TRIGGER", "claims"} {
		if strings.Contains(dump, name) {
			t.Errorf("the clone knows %s:\n%s", name, dump)
		}
	}
	if !strings.Contains(dump, "CREATE POLICY mixed ON public.things TO "+c.clone.Names().Runtime+" USING") {
		t.Error("the policy that is for the runtime login too is not for it alone")
	}
	s.GetsInNowhere(t, "an additional role", agenttest.LoginOf{Wanted: c.clone, Username: first.Username, Password: first.Password})
}

// Text that mentions a role stays as it is, wherever it stands.
func TestACloneKeepsTexts(t *testing.T) {
	t.Parallel()
	s, source := agenttest.DatabaseStack(t)
	check.Must(s.Owner(t, source).Exec(fmt.Sprintf(`CREATE SCHEMA %[1]q;
		CREATE TABLE %[1]q.%[2]q (%[1]q text DEFAULT 'OWNER TO %[1]s');
		INSERT INTO %[1]q.%[2]q VALUES ('%[1]s'); CREATE FUNCTION public.who() RETURNS text LANGUAGE sql SET application_name TO '%[1]s'
			AS 'SELECT ''GRANT ALL ON t TO "%[1]s";''::text';
		COMMENT ON FUNCTION public.who() IS '-- Name: who(); Type: FUNCTION; Schema: public; Owner: %[1]s
GRANT ALL ON FUNCTION who() TO "%[1]s";';
		CREATE POLICY %[1]q ON %[1]q.%[2]q TO %[1]q USING (current_user <> '%[1]s'); GRANT SELECT ON %[1]q.%[2]q TO %[2]q;
		CREATE TABLE public.roles (r regrole); INSERT INTO public.roles VALUES ('%[1]q')`, source.Name, source.Names().Runtime)))(t)
	c := cloningOf(s, source)
	if notes := c.loaded(t); len(notes) > 0 {
		t.Errorf("notes: %v", notes)
	}
	c.switched(t)
	texts := fmt.Sprintf(`SELECT concat_ws(E'\n', (SELECT row_to_json(t) FROM %[1]q.%[2]q t), (SELECT r::text FROM public.roles),
		who(), obj_description('who'::regproc), (SELECT proconfig FROM pg_proc WHERE proname = 'who'),
		(SELECT adbin IS NOT NULL || pg_get_expr(adbin, adrelid) FROM pg_attrdef), (SELECT polname || pg_get_expr(polqual, polrelid)
			FROM pg_policy))`, source.Name, source.Names().Runtime)
	if of, as := s.InDatabase(t, source, texts), s.InDatabase(t, c.clone, texts); of != as {
		t.Errorf("the source has\n%s\nthe clone\n%s", of, as)
	}
	rights := fmt.Sprintf(`SELECT concat_ws(E'\n', (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM pg_class, unnest(relacl) a
			WHERE oid = '%[1]q.%[2]q'::regclass),
		(SELECT polroles::regrole[] FROM pg_policy))`, source.Name, source.Names().Runtime)
	if of, as := c.renamed(s.InDatabase(t, source, rights)), s.InDatabase(t, c.clone, rights); of != as {
		t.Errorf("the source has\n%s\nthe clone\n%s", of, as)
	}
}

// A clone of which nobody speaks any more, as after a restore of the metadata from a backup, does not keep its file for good.
func TestTheFileOfAForgottenCloneIsRemoved(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	first := s.Child(t, "")
	s.StartBouncer(t.Context(), t)
	c, other := cloningOf(s, s.Made(t, database.SingleLogin)), cloningOf(s, s.Made(t, database.SingleLogin))
	for _, of := range []cloning{c, other} {
		s.Saved(t, of.source)
		s.Done(t, of.ensure())
		s.WantBackup(t, of.dump(), command.BackupDone, "")
	}
	first.Kill()
	const silent = "UPDATE ledger.operation SET spoken_at = now() - interval '31 days' WHERE id <> $1"
	check.Must(s.Super.Exec(silent, other.clone.Operation))(t)
	s.Child(t, "")
	check.Eventually(t, "the file is left", func() bool { return len(c.passingFiles(t)) == 0 })
	if len(other.passingFiles(t)) == 0 {
		t.Error("the file of a clone that is under way is gone")
	}
	s.Keeps(t, c.source, agenttest.BackupName)
	s.Done(t, agenttest.Closing(other.clone.Operation))
	other.noPassingFile(t)
}

// A clone knows nothing of the source's overlay, and lacks nothing for it: not a note is made. It may have its own.
func TestTheCloneOfAnOverlaidDatabase(t *testing.T) {
	t.Parallel()
	s := agenttest.Shared(t)
	source := s.Made(t, database.SingleLogin)
	check.Must(s.Owner(t, source).Exec("CREATE TABLE older (n int); INSERT INTO older VALUES (1); CREATE SCHEMA sales"))(t)
	s.Done(t, source.OptIn())
	l := s.Opened(t, source.Additional(1, role.ReadWrite))
	check.Must(s.Owner(t, source).Exec(fmt.Sprintf(`CREATE TABLE sales.later (n serial);
		GRANT SELECT (n), REFERENCES ON older TO %[1]s WITH GRANT OPTION;
		ALTER DEFAULT PRIVILEGES IN SCHEMA sales GRANT SELECT ON TABLES TO %[1]s; SELECT lo_from_bytea(4711, 'l');
		GRANT SELECT ON LARGE OBJECT 4711 TO %[1]s`, l.Username)))(t)
	c := cloningOf(s, source)
	if notes := c.loaded(t); len(notes) > 0 {
		t.Errorf("notes: %v", notes)
	}
	c.switched(t)
	if dump := s.Dumped(t, c.clone); strings.Contains(dump, "pgh_") {
		t.Errorf("the clone has something of its source's roles: %s", dump)
	}
	s.GetsIn(t, "the clone", c.clone.Present(database.OwnerLogin))
	s.Done(t, c.clone.OptIn())
	its := s.Opened(t, c.clone.Additional(1, role.ReadOnly))
	check.Must(s.Direct(t, c.clone.Name, its.Username, its.Password).Exec("SELECT * FROM older; SELECT * FROM sales.later"))(t)
	s.GetsIn(t, "the source", l)
}
