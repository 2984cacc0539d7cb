package agent_test

import (
	"database/sql"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// load makes the copy for a restore from the database's own backup.
func (w wanted) load(operation string) protocol.Command {
	return told(operation, 1, command.Load{
		DatabaseID: w.databaseID(), Compare: true,
		Source: command.Source{DatabaseID: w.databaseID(), Filename: backup.Filename(backupName)},
	})
}

func (w wanted) switching(operation string) protocol.Command {
	return told(operation, 1, command.Switch{DatabaseID: w.databaseID(), Open: true})
}

func (w wanted) discarding(operation string) protocol.Command {
	return told(operation, 1, command.Discard{DatabaseID: w.databaseID()})
}

// saved makes the backup that a test restores.
func (s *stack) saved(t testing.TB, w wanted) {
	t.Helper()
	s.wantBackup(t, w.backup(newUUID(), backupName, false), command.BackupDone, "")
}

// verified makes a backup, and has it verified.
func (s *stack) verified(t testing.TB, w wanted) {
	t.Helper()
	c := w.backup(newUUID(), backupName, true)
	if report := s.backedUp(t, c); report.State != command.BackupDone || report.VerifiedAt == nil {
		t.Fatalf("%+v", report)
	}
}

// loaded sends the command again and again until the copy has come to something.
func (s *stack) loaded(t testing.TB, c protocol.Command) (report command.LoadReport) {
	t.Helper()
	check.Eventually(t, "the copy does not come to an end", func() bool {
		report = as[command.LoadReport](t, s.done(t, c))
		return report.State != command.LoadRunning
	})
	return report
}

// ready loads a copy that must be whole, without a word about what it lacks.
func (s *stack) ready(t testing.TB, w wanted, operation string) {
	t.Helper()
	if report := s.loaded(t, w.load(operation)); report.State != command.LoadReady || len(report.Notes) > 0 {
		t.Fatalf("%+v", report)
	}
	const usable = `SELECT count(*) FROM pg_roles r WHERE r.rolname = $1 AND (r.rolcanlogin OR r.rolbypassrls
		OR EXISTS (SELECT FROM pg_shdepend s WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid))`
	if s.one(t, usable, "restore_"+compact(operation)) != "0" {
		t.Error("the copy's login can be used, or something depends on it")
	}
}

// restored restores the backup.
func (s *stack) restored(t testing.TB, w wanted) {
	t.Helper()
	operation := newUUID()
	s.ready(t, w, operation)
	s.done(t, w.switching(operation))
	s.discarded(t, w, operation)
}

// discarded gives up what was replaced, and waits until nothing of the restore is left.
func (s *stack) discarded(t testing.TB, w wanted, operation string) {
	t.Helper()
	s.done(t, w.discarding(operation))
	s.nothingOf(t, operation)
}

// nothingOf waits until no database, role or row of a restore's copy is left.
func (s *stack) nothingOf(t testing.TB, operation string) {
	t.Helper()
	const left = `SELECT coalesce(string_agg(name, ' '), '') FROM (
		SELECT datname AS name FROM pg_database UNION ALL SELECT rolname FROM pg_roles
		UNION ALL SELECT 'row of ' || name FROM ledger.copy) every WHERE name LIKE '%' || $1`
	check.Eventually(t, "something of the restore is left", func() bool { return s.one(t, left, compact(operation)) == "" })
}

// dumped is the text of a dump with owners and privileges.
func (s *stack) dumped(t testing.TB, w wanted) string {
	t.Helper()
	out, err := exec.Command(s.config.PgDump, "--no-subscriptions", s.pg.URL(w.name)).Output()
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

// wholeOf is what belongs to a database as a whole, with its grantors, and what is set in it.
func (s *stack) wholeOf(t testing.TB, w wanted) string {
	t.Helper()
	return s.one(t, `SELECT concat_ws(E'\n', pg_get_userbyid(datdba), datconnlimit, shobj_description(d.oid, 'pg_database'),
		(SELECT string_agg(a::text, E'\n' ORDER BY a::text) FROM unnest(datacl) a),
		(SELECT string_agg(setrole::regrole || ' ' || array_to_string(setconfig, '; '), E'\n' ORDER BY setrole)
			FROM pg_db_role_setting s WHERE s.setdatabase = d.oid)) FROM pg_database d WHERE datname = $1`, w.name)
}

func (s *stack) databaseOID(t testing.TB, w wanted) string {
	t.Helper()
	return s.one(t, "SELECT oid FROM pg_database WHERE datname = $1", w.name)
}

// furnishing is a database with owners, privileges, policies and large objects of several roles. %[1]s is the name of the
// database, %[2]s and %[3]s are additional roles.
const furnishing = `
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

// What comes back is what the backup had. What belongs to the database as a whole is what it was in the moment of the switch.
func TestWhatARestoreBringsBack(t *testing.T) {
	t.Parallel()
	s, w := databaseStack(t)
	first, second := s.opened(t, w.additional(1, role.Custom)), s.opened(t, w.additional(2, role.ReadWrite))
	owner := s.owner(t, w)
	check.Must(owner.Exec(fmt.Sprintf(furnishing, w.name, first.username, second.username)))(t)
	of := s.direct(t, w.name, first.username, first.password)
	check.Must(of.Exec("CREATE TABLE of_first (id int); GRANT SELECT ON of_first TO " + second.username))(t)
	check.Must(of.Exec(fmt.Sprintf("GRANT CREATE ON DATABASE %q TO %s", w.name, second.username)))(t)
	before := s.dumped(t, w)
	s.verified(t, w)

	check.Must(owner.Exec(`DROP TABLE things CASCADE; DROP FUNCTION double; SELECT lo_unlink(4711); CREATE SCHEMA later`))(t)
	later := s.opened(t, w.additional(3, role.ReadOnly))
	check.Must(owner.Exec(fmt.Sprintf(`REVOKE CONNECT ON DATABASE %[1]q FROM %[2]s; GRANT TEMPORARY ON DATABASE %[1]q TO PUBLIC;
		ALTER ROLE %[1]q IN DATABASE %[1]q SET search_path = "$user", public, "a, ""b""";
		ALTER ROLE %[1]q IN DATABASE %[1]q SET DateStyle = 'SQL, DMY';
		CREATE EXTENSION pg_trgm; SELECT show_limit(); ALTER ROLE %[1]q IN DATABASE %[1]q SET pg_trgm.similarity_threshold = 0.4;
		ALTER ROLE %[1]q IN DATABASE %[1]q SET work_mem = '7MB'`, w.name, second.username)))(t)
	s.done(t, w.configure(1, command.Configure{Timeouts: standard}))
	const byAdmin = `COMMENT ON DATABASE %[1]q IS 'it''s \'; ALTER DATABASE %[1]q CONNECTION LIMIT 12`
	check.Must(s.super.Exec(fmt.Sprintf(byAdmin, w.name)))(t)
	whole, oid := s.wholeOf(t, w), s.databaseOID(t, w)
	// A setting of a role that is not one of the database's stays behind.
	check.Must(s.super.Exec(fmt.Sprintf(`ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '3MB'`, w.name)))(t)
	s.restored(t, w)

	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(s.dumped(t, w), "\n")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(strings.Split(whole, "\n"), strings.Split(s.wholeOf(t, w), "\n")); diff != "" {
		t.Error(diff)
	}
	if s.databaseOID(t, w) == oid {
		t.Error("it is the same database")
	}
	for _, l := range []loginOf{w.present(database.OwnerLogin), w.present(database.RuntimeLogin), first, later} {
		s.getsIn(t, l.username, l)
	}
	s.getsInNowhere(t, "a role that has lost CONNECT", second)
	s.shows(t, w.present(database.OwnerLogin), "statement_timeout", "1min")
}

// What belonged to a role that was removed since the backup belongs to the owner, and the result says which policy is gone.
func TestRestoreWithoutARoleThatIsGone(t *testing.T) {
	overModels(t, testRestoreWithoutARoleThatIsGone)
}

func testRestoreWithoutARoleThatIsGone(t *testing.T, m database.RoleModel) {
	s, w, l := roleStackOf(t, m, role.Custom)
	check.Must(s.owner(t, w).Exec(fmt.Sprintf(`CREATE TABLE things (id int); GRANT SELECT ON things TO %[1]s;
		CREATE POLICY its_own ON things TO %[1]s USING (true); GRANT CREATE ON SCHEMA public TO %[1]s`, l.username)))(t)
	check.Must(s.direct(t, w.name, l.username, l.password).Exec("CREATE TABLE of_role (id int)"))(t)
	s.saved(t, w)
	check.Must(s.owner(t, w).Exec(fmt.Sprintf("DROP TABLE things; REVOKE CREATE ON SCHEMA public FROM %[1]s", l.username)))(t)
	check.Must(s.direct(t, w.name, l.username, l.password).Exec("DROP TABLE of_role"))(t)
	if found := s.removed(t, l.remove(2)); len(found.List) > 0 {
		t.Fatalf("%+v", found)
	}
	operation := newUUID()
	report := s.loaded(t, w.load(operation))
	if report.State != command.LoadReady || len(report.Notes) != 1 ||
		!strings.Contains(report.Notes[0], "its_own ON public.things") {
		t.Fatalf("%+v", report)
	}
	s.done(t, w.switching(operation))
	s.wantOwnersTable(t, w)
	s.discarded(t, w, operation)
	s.gone(t, l)
}

// wantOwnersTable demands that the table of a role that is gone belongs to the owner.
func (s *stack) wantOwnersTable(t testing.TB, w wanted) {
	t.Helper()
	owner := s.inDatabase(t, w, "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'of_role'")
	if owner != w.name {
		t.Errorf("the table belongs to %s", owner)
	}
}

// inDatabase is one, in a customer's database.
func (s *stack) inDatabase(t testing.TB, w wanted, query string) (text string) {
	t.Helper()
	db := s.superIn(t, w)
	defer db.Close() // a switch would wait for it
	check.NoError(t, db.QueryRow(query).Scan(&text))
	return text
}

// A role that is removed while the copy stands leaves nothing in it either.
func TestRoleIsRemovedBeforeTheSwitch(t *testing.T) {
	s, w := databaseStack(t)
	l := s.opened(t, w.additional(1, role.Custom))
	check.Must(s.owner(t, w).Exec("GRANT CREATE ON SCHEMA public TO " + l.username))(t)
	of := s.direct(t, w.name, l.username, l.password)
	check.Must(of.Exec("CREATE TABLE of_role (id int)"))(t)
	s.saved(t, w)
	check.Must(of.Exec("DROP TABLE of_role"))(t)
	check.Must(s.owner(t, w).Exec("REVOKE CREATE ON SCHEMA public FROM " + l.username))(t)
	operation := newUUID()
	s.ready(t, w, operation)
	s.removed(t, l.remove(2))
	s.done(t, w.switching(operation))
	s.wantOwnersTable(t, w)
	s.discarded(t, w, operation)
	s.gone(t, l)
}

// watcher asks for the same row again and again over one pool, and notes what it hears.
type watcher struct {
	first, over chan struct{} // closed when it has heard something, and when it has heard the last
	said        []string
}

// watch returns when something has been heard. The watcher ends with the last that is to be heard, or after ten seconds.
func watch(t testing.TB, db *sql.DB, last string) *watcher {
	t.Helper()
	w := &watcher{first: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(w.over)
		for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
			var said string
			if err := db.QueryRow("SELECT said || (SELECT count(*) FROM later) FROM word").Scan(&said); err != nil {
				said = "error"
			}
			n := len(w.said)
			if n == 0 || w.said[n-1] != said {
				w.said = append(w.said, said)
			}
			if n == 0 {
				close(w.first)
			}
			if said == last {
				return
			}
		}
	}()
	<-w.first
	return w
}

func (w *watcher) heard() string {
	<-w.over
	return strings.Join(w.said, " ")
}

// A client that stays, by whatever way, sees the data of now, then an error, and then the data of the backup.
func TestClientsOverASwitch(t *testing.T) {
	s, w := databaseStack(t)
	owner := s.owner(t, w)
	check.Must(owner.Exec("CREATE TABLE word AS SELECT 'old' AS said; CREATE TABLE later (id int)"))(t)
	s.saved(t, w)
	check.Must(owner.Exec("UPDATE word SET said = 'new'; INSERT INTO later VALUES (1)"))(t)
	operation := newUUID()
	s.ready(t, w, operation)
	watchers := map[string]*watcher{}
	for way, db := range s.waysOf(t, w.present(database.OwnerLogin)) {
		watchers[way] = watch(t, db, "old0")
	}
	held := check.Must(s.pooled(t, w.name+".transaction", w.name, w.passwords[database.OwnerLogin]).Begin())(t)
	check.Must(held.Exec("INSERT INTO later VALUES (2)"))(t)
	s.done(t, w.switching(operation))
	if err := held.Commit(); err == nil {
		t.Error("a transaction of before was committed")
	}
	for way, watcher := range watchers {
		if heard := watcher.heard(); heard != "new1 error old0" {
			t.Errorf("%s: %s", way, heard)
		}
	}
	s.discarded(t, w, operation)
}

// A customer's own transactions are no obstacle: one that changes the role, and another account's that passes on what it was
// granted on the database.
func TestSwitchPushesThroughTransactions(t *testing.T) {
	s, w := databaseStack(t)
	stranger := s.made(t, database.SingleLogin)
	check.Must(s.owner(t, w).Exec(fmt.Sprintf("GRANT CREATE ON DATABASE %q TO %q WITH GRANT OPTION", w.name, stranger.name)))(t)
	s.saved(t, w)
	operation := newUUID()
	s.ready(t, w, operation)
	whole := s.wholeOf(t, w)
	own := check.Must(s.owner(t, w).Begin())(t)
	check.Must(own.Exec("ALTER ROLE CURRENT_USER SET work_mem = '5MB'"))(t)
	theirs := check.Must(s.owner(t, stranger).Begin())(t)
	check.Must(theirs.Exec(fmt.Sprintf("GRANT CREATE ON DATABASE %q TO pg_monitor", w.name)))(t)
	s.done(t, w.switching(operation))
	if err := theirs.Commit(); err == nil {
		t.Error("the stranger's grant was committed")
	}
	if now := s.wholeOf(t, w); now != whole {
		t.Errorf("%s\n%s", whole, now)
	}
	s.discarded(t, w, operation)
}
