package agenttest

import (
	"context"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Trap fails in the copy of a restore where it runs as anybody but the login of that copy.
const Trap = `CREATE FUNCTION trap(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
	IF current_database() ~ '^restore_' AND (session_user <> current_database() OR current_user <> session_user
		OR (SELECT rolsuper OR rolcreatedb OR rolcreaterole FROM pg_catalog.pg_roles WHERE rolname = current_user)
		OR EXISTS (SELECT FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles r ON r.oid = m.member
			WHERE r.rolname = current_user)) THEN
		RAISE 'the trap runs as % for %', current_user, session_user;
	END IF;
	RETURN n; END $$;
	CREATE FUNCTION trigger_trap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM public.trap(1); RETURN NEW; END';
	CREATE DOMAIN caught AS int CHECK (public.trap(VALUE) > 0);
	CREATE TABLE prey (id int DEFAULT public.trap(1) CHECK (public.trap(id) > 0),
		twice int GENERATED ALWAYS AS (public.trap(id)) STORED, domain caught);
	CREATE INDEX ON prey (public.trap(id)); CREATE STATISTICS prey_trap ON (public.trap(id)), id FROM prey;
	CREATE TRIGGER trap AFTER INSERT ON prey FOR EACH ROW EXECUTE FUNCTION trigger_trap();
	CREATE TRIGGER always AFTER INSERT ON prey FOR EACH ROW EXECUTE FUNCTION trigger_trap();
	ALTER TABLE prey ENABLE ALWAYS TRIGGER always;
	INSERT INTO prey (id, domain) SELECT n, n FROM generate_series(1, 20) n;
	CREATE MATERIALIZED VIEW trapped AS SELECT public.trap(id) FROM prey; CREATE VIEW viewed AS SELECT public.trap(id) FROM prey;
	ALTER TABLE prey ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY trap ON prey USING (public.trap(id) > 0);`

// Doctored changes the sidecar of the backup, and the manifest so that it names the changed one.
func (s *Stack) Doctored(t *testing.T, w Wanted, change func(schema string) string) {
	t.Helper()
	s.Rewritten(t, w, func(_ *backup.Manifest, _, sidecar []byte) (data, newSidecar []byte) {
		return nil, backuptest.Packed(change(backuptest.Unpacked(t, sidecar)))
	})
}

// Rewritten puts another set in the place of the backup.
func (s *Stack) Rewritten(t *testing.T, w Wanted, change backuptest.Change) {
	t.Helper()
	files := store.New(s.Config.BackupDir, store.Options{Reserve: 1, Key: func(context.Context, id.DatabaseID) ([]byte, error) {
		return BackupKey, nil
	}})
	backuptest.Rewrite(t, files, w.DatabaseID(), BackupName, change)
}

// Load makes the copy for a restore from the database's own backup.
func (w Wanted) Load(operation string) protocol.Command {
	return Told(operation, 1, command.Load{
		DatabaseID: w.DatabaseID(), Compare: true,
		Source: command.Source{DatabaseID: w.DatabaseID(), Filename: backup.Filename(BackupName)},
	})
}

// Switching puts the copy of an operation in the place of the database.
func (w Wanted) Switching(operation string) protocol.Command {
	return Told(operation, 1, command.Switch{DatabaseID: w.DatabaseID(), Open: true})
}

// Discarding gives up what was replaced.
func (w Wanted) Discarding(operation string) protocol.Command {
	return Told(operation, 1, command.Discard{DatabaseID: w.DatabaseID()})
}

// Saved makes the backup that a test restores.
func (s *Stack) Saved(t testing.TB, w Wanted) {
	t.Helper()
	s.WantBackup(t, w.Backup(NewUUID(), BackupName, false), command.BackupDone, "")
}

// Verified makes a backup, and has it verified.
func (s *Stack) Verified(t testing.TB, w Wanted) {
	t.Helper()
	c := w.Backup(NewUUID(), BackupName, true)
	if report := s.BackedUp(t, c); report.State != command.BackupDone || report.VerifiedAt == nil {
		t.Fatalf("%+v", report)
	}
}

// Loaded sends the command again and again until the copy has come to something.
func (s *Stack) Loaded(t testing.TB, c protocol.Command) (report command.LoadReport) {
	t.Helper()
	check.Eventually(t, "the copy does not come to an end", func() bool {
		report = As[command.LoadReport](t, s.Done(t, c))
		return report.State != command.LoadRunning
	})
	return report
}

// Ready loads a copy that must be whole, without a word about what it lacks.
func (s *Stack) Ready(t testing.TB, w Wanted, operation string) {
	t.Helper()
	if report := s.Loaded(t, w.Load(operation)); report.State != command.LoadReady || len(report.Notes) > 0 {
		t.Fatalf("%+v", report)
	}
	const usable = `SELECT count(*) FROM pg_roles r WHERE r.rolname = $1 AND (r.rolcanlogin OR r.rolbypassrls
		OR EXISTS (SELECT FROM pg_shdepend s WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid))`
	if s.One(t, usable, "restore_"+Compact(operation)) != "0" {
		t.Error("the copy's login can be used, or something depends on it")
	}
}

// Restored restores the backup.
func (s *Stack) Restored(t testing.TB, w Wanted) {
	t.Helper()
	operation := NewUUID()
	s.Ready(t, w, operation)
	s.Done(t, w.Switching(operation))
	s.Discarded(t, w, operation)
}

// Discarded gives up what was replaced, and waits until nothing of the restore is left.
func (s *Stack) Discarded(t testing.TB, w Wanted, operation string) {
	t.Helper()
	s.Done(t, w.Discarding(operation))
	s.NothingOf(t, operation)
}

// NothingOf waits until no database, role or row of a restore's copy is left.
func (s *Stack) NothingOf(t testing.TB, operation string) {
	t.Helper()
	const left = `SELECT coalesce(string_agg(name, ' '), '') FROM (
		SELECT datname AS name FROM pg_database UNION ALL SELECT rolname FROM pg_roles
		UNION ALL SELECT 'row of ' || name FROM ledger.copy) every WHERE name LIKE '%' || $1`
	check.Eventually(t, "something of the restore is left", func() bool { return s.One(t, left, Compact(operation)) == "" })
}

// Dumped is the text of a dump with owners and privileges.
func (s *Stack) Dumped(t testing.TB, w Wanted) string {
	t.Helper()
	out, err := exec.Command(s.Config.PgDump, "--no-subscriptions", s.PG.URL(w.Name)).Output()
	check.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, `\restrict`) && !strings.HasPrefix(line, `\unrestrict`) { // with another word each time
			if p := policyFor.FindStringSubmatch(line); p != nil {
				roles := strings.Split(p[2], ", ")
				slices.Sort(roles)
				line = p[1] + strings.Join(roles, ", ") + p[3]
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// policyFor is a policy for some roles: pg_dump lists them in the order in which PostgreSQL stores all roles at the time.
var policyFor = regexp.MustCompile(`^(CREATE POLICY .*? TO )([^()]+?)( (?:USING|WITH CHECK) .*\n)$`)

// WholeOf is what belongs to a database as a whole, with its grantors, and what is set in it.
func (s *Stack) WholeOf(t testing.TB, w Wanted) string {
	t.Helper()
	return s.One(t, `SELECT concat_ws(E'\n', pg_get_userbyid(datdba), datconnlimit, shobj_description(d.oid, 'pg_database'),
		(SELECT string_agg(a::text, E'\n' ORDER BY a::text) FROM unnest(datacl) a),
		(SELECT string_agg(setrole::regrole || ' ' || array_to_string(setconfig, '; '), E'\n' ORDER BY setrole)
			FROM pg_db_role_setting s WHERE s.setdatabase = d.oid)) FROM pg_database d WHERE datname = $1`, w.Name)
}

// DatabaseOID is PostgreSQL's number of the database.
func (s *Stack) DatabaseOID(t testing.TB, w Wanted) string {
	t.Helper()
	return s.One(t, "SELECT oid FROM pg_database WHERE datname = $1", w.Name)
}

// Furnishing is a database with owners, privileges, policies and large objects of several roles. %[1]s is the name of the
// database, %[2]s and %[3]s are additional roles.
const Furnishing = `
	CREATE TABLE things (id serial PRIMARY KEY, name text UNIQUE, mine text DEFAULT current_user);
	INSERT INTO things (name) SELECT 'thing ' || n FROM generate_series(1, 300) n;
	CREATE VIEW names AS SELECT name FROM things; CREATE MATERIALIZED VIEW numbers AS SELECT count(*) FROM things;
	CREATE FUNCTION double(n int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 2 * n'; REVOKE ALL ON FUNCTION double FROM PUBLIC;
	CREATE INDEX doubled ON things (double(id));
	GRANT SELECT (name), UPDATE (name) ON things TO %[2]s WITH GRANT OPTION; GRANT EXECUTE ON FUNCTION double TO %[3]s;
	ALTER TABLE things ENABLE ROW LEVEL SECURITY;
	CREATE POLICY everybody ON things USING (true); CREATE POLICY few ON things TO %[2]s, %[3]s USING (id > 1);
	ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO %[3]s;
	SELECT lo_from_bytea(4711, 'large'); GRANT SELECT ON LARGE OBJECT 4711 TO %[2]s; COMMENT ON TABLE things IS 'of all kinds';
	GRANT CREATE ON SCHEMA public TO %[2]s, %[3]s; GRANT CREATE ON DATABASE "%[1]s" TO %[2]s WITH GRANT OPTION;`

// WantOwnersTable demands that the table of a role that is gone belongs to the owner.
func (s *Stack) WantOwnersTable(t testing.TB, w Wanted) {
	t.Helper()
	owner := s.InDatabase(t, w, "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'of_role'")
	if owner != w.Name {
		t.Errorf("the table belongs to %s", owner)
	}
}

// InDatabase is one, in a customer's database.
func (s *Stack) InDatabase(t testing.TB, w Wanted, query string) (text string) {
	t.Helper()
	db := s.SuperIn(t, w)
	defer db.Close() // a switch would wait for it
	check.NoError(t, db.QueryRow(query).Scan(&text))
	return text
}
