package setup_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

func TestMain(m *testing.M) {
	sample.Tests(4)
	os.Exit(clustertest.Main(m))
}

// For what is not about versions or languages: tests run on what the machine has.
var (
	anyVersion  = floors.Policy{Development: true}
	anyLanguage = floors.Policy{Development: true}
)

func prepare(t *testing.T, pg *cluster.Postgres, file string) (setup.Report, setup.Credentials) {
	t.Helper()
	report, err := setup.Init(t.Context(), setup.Options{
		DSN: pg.URL("postgres"), CredentialsFile: file, Versions: anyVersion, Languages: anyLanguage,
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := setup.ReadCredentials(file)
	if err != nil {
		t.Fatal(err)
	}
	return report, c
}

func text(t *testing.T, url, query string) (s string) {
	t.Helper()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), query).Scan(&s); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return s
}

func TestPreparedServerGivesNobodyMoreThanItNeeds(t *testing.T) {
	pg := clustertest.New(t, map[string]string{"wal_level": "logical", "max_wal_senders": "10"})
	report, c := prepare(t, pg, filepath.Join(t.TempDir(), "credentials"))
	if slices.ContainsFunc(report.Warnings, func(w string) bool { return !strings.Contains(w, "procedural language") }) {
		t.Errorf("warnings on loopback: %v", report.Warnings)
	}
	admin := pg.URL("postgres")
	for query, want := range map[string]string{
		`SELECT concat(rolsuper, rolcreatedb, rolcreaterole, rolbypassrls, rolreplication) FROM pg_roles
			WHERE rolname = 'pgherd_agent'`: "ftttt",
		`SELECT concat(rolsuper, rolcreatedb, rolcreaterole, rolbypassrls, rolreplication) FROM pg_roles
			WHERE rolname = 'pgherd_pooler'`: "fffff",
		`SELECT string_agg(r.rolname, ' ' ORDER BY r.rolname) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
			WHERE m.member = 'pgherd_agent'::regrole`: "pg_create_subscription pg_monitor pg_read_all_data " +
			"pg_signal_backend pg_use_reserved_connections",
		`SELECT string_agg(r.rolname, ' ' ORDER BY r.rolname) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
			WHERE m.member = 'pgherd_agent'::regrole AND m.admin_option`: "pg_read_all_data pg_use_reserved_connections",
		// PUBLIC may neither connect nor make temporary tables anywhere.
		`SELECT count(*) FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
			WHERE a.grantee = 0 AND d.datallowconn`: "0",
	} {
		if got := text(t, admin, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	mine := pg.URLFor(setup.AgentLogin, c.AgentPassword, setup.MaintenanceDatabase)
	for setting, want := range map[string]string{
		"search_path": "pg_catalog, pg_temp", "createrole_self_grant": "set, inherit", "statement_timeout": "0", "lock_timeout": "0",
		"restrict_nonsystem_relation_kind": "view, foreign-table", "log_statement": "none", "log_min_error_statement": "panic",
	} {
		if got := text(t, mine, "SHOW "+setting); got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
	pooler := pg.URLFor(setup.PoolerLogin, c.PoolerPassword, setup.MaintenanceDatabase)
	if got := text(t, pooler, "SELECT count(*) FROM pooler.login_secret('pgherd_agent', 'x')"); got != "0" {
		t.Error("PgBouncer's account reads the agent's verifier")
	}
	if got := text(t, pooler, "SELECT has_schema_privilege('ledger', 'USAGE')::text"); got != "false" {
		t.Error("PgBouncer's account reaches the ledger")
	}
	if got := text(t, pooler, "SELECT has_schema_privilege('server', 'USAGE')::text"); got != "false" {
		t.Error("PgBouncer's account asks for what the server's superuser reads")
	}
	text(t, mine, "SELECT count(*) FROM server.trusted_languages()")
}

func TestRunAgainRepairsAndKeepsPasswords(t *testing.T) {
	pg := clustertest.New(t, nil)
	file := filepath.Join(t.TempDir(), "credentials")
	_, first := prepare(t, pg, file)
	admin := pg.URL("postgres")
	const verifier = "SELECT rolpassword FROM pg_authid WHERE rolname = 'pgherd_agent'"
	before := text(t, admin, verifier)
	clustertest.Exec(t, admin, "ALTER ROLE pgherd_agent NOCREATEDB", "ALTER ROLE pgherd_pooler PASSWORD 'other'",
		"GRANT CONNECT ON DATABASE postgres TO PUBLIC", "CREATE DATABASE later", "ALTER ROLE pgherd_agent RESET search_path")
	clustertest.Exec(t, pg.URL(setup.MaintenanceDatabase), "INSERT INTO ledger.operation VALUES ('kept', 1)")
	_, again := prepare(t, pg, file)
	if first != again {
		t.Error("the passwords changed")
	}
	if text(t, admin, verifier) != before {
		t.Error("a password that was right was set again")
	}
	text(t, pg.URLFor(setup.PoolerLogin, again.PoolerPassword, setup.MaintenanceDatabase), "SELECT 1")
	const open = `SELECT count(*) FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
		WHERE a.grantee = 0 AND d.datallowconn`
	if n := text(t, admin, open); n != "0" {
		t.Errorf("PUBLIC has %s privileges", n)
	}
	if got := text(t, admin, "SELECT rolcreatedb::text FROM pg_roles WHERE rolname = 'pgherd_agent'"); got != "true" {
		t.Error("CREATEDB was not repaired")
	}
	if got := text(t, pg.URL(setup.MaintenanceDatabase), "SELECT id FROM ledger.operation"); got != "kept" {
		t.Error("the ledger lost its rows")
	}
}

// A second file would cut off whoever uses the passwords of the first.
func TestASecondFileIsRefused(t *testing.T) {
	pg := clustertest.New(t, nil)
	file, second := filepath.Join(t.TempDir(), "credentials"), filepath.Join(t.TempDir(), "second")
	_, first := prepare(t, pg, file)
	mine := pg.URLFor(setup.AgentLogin, first.AgentPassword, setup.MaintenanceDatabase)
	options := setup.Options{DSN: pg.URL("postgres"), CredentialsFile: second, Versions: anyVersion, Languages: anyLanguage}
	if _, err := setup.Init(t.Context(), options); err == nil || !strings.Contains(err.Error(), "--new-passwords") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(second); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the second file: %v", err)
	}
	text(t, mine, "SELECT 'the first password still works'")
	options.NewPasswords = true
	if _, err := setup.Init(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	c, err := setup.ReadCredentials(second)
	if err != nil || c == first {
		t.Errorf("the second file holds the same, or nothing: %v", err)
	}
	theirs := pg.URLFor(setup.AgentLogin, c.AgentPassword, setup.MaintenanceDatabase)
	text(t, theirs, "SELECT 'the second works'")
	for what, c := range map[string]struct {
		file string
		new  bool
	}{
		"a file that is older": {file, false}, "new passwords in it": {file, true}, "new passwords in the right one": {second, true},
	} {
		options.CredentialsFile, options.NewPasswords = c.file, c.new
		before, err := os.ReadFile(c.file)
		if _, refusal := setup.Init(t.Context(), options); refusal == nil || !strings.Contains(refusal.Error(), "--new-passwords") {
			t.Errorf("%s: got %v", what, refusal)
		}
		if after, err2 := os.ReadFile(c.file); errors.Join(err, err2) != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the file has changed: %v", what, errors.Join(err, err2))
		}
		text(t, theirs, "SELECT 'the second works'")
	}
}

// Debian's pg_hba.conf lets the superuser in by peer authentication alone.
func TestAPeerIsPrepared(t *testing.T) {
	uid, _, switched, err := cluster.ChildUser()
	if err != nil {
		t.Fatal(err)
	}
	if !switched {
		uid = os.Getuid()
	}
	who, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		t.Fatal(err)
	}
	pg := clustertest.New(t, nil)
	name := `"` + who.Username + `"`
	clustertest.Exec(t, pg.URL("postgres"), "CREATE ROLE "+name+" SUPERUSER LOGIN")
	path := text(t, pg.URL("postgres"), "SHOW hba_file")
	rules, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("local all "+name+" peer\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	clustertest.Exec(t, pg.URL("postgres"), "SELECT pg_reload_conf()")
	if switched { // nobody else may enter the folder of root's tests
		if err := os.Chmod(filepath.Dir(filepath.Dir(pg.SocketDir())), 0o711); err != nil {
			t.Fatal(err)
		}
	}
	options := setup.Options{
		DSN: "host=" + pg.SocketDir() + " port=" + strconv.Itoa(pg.Port()) + " user=" + who.Username +
			" dbname=postgres sslmode=disable",
		Peer: &setup.FileOwner{UID: uid}, CredentialsFile: filepath.Join(t.TempDir(), "credentials"),
		Versions: anyVersion, Languages: anyLanguage,
	}
	if _, err := setup.Init(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if switched {
		options.Peer = nil
		if _, err := setup.Init(t.Context(), options); err == nil || !strings.Contains(err.Error(), "--peer-user") {
			t.Errorf("as root itself: %v", err)
		}
	}
	options.DSN = "host=127.0.0.1 port=" + strconv.Itoa(pg.Port()) + " user=x dbname=postgres sslmode=require"
	if _, err := setup.Init(t.Context(), options); err == nil || !strings.Contains(err.Error(), "sslmode=disable") {
		t.Errorf("a server without TLS: %v", err)
	}
}

func TestUnsafeServersAreRefused(t *testing.T) {
	for what, c := range map[string]struct {
		settings map[string]string
		change   string
		want     string
	}{
		"few reserved connections": {settings: map[string]string{"reserved_connections": "2"}, want: "reserved_connections"},
		"no superuser": {
			change: "CREATE ROLE plain LOGIN PASSWORD 'plain'; GRANT pg_read_all_settings TO plain", want: "superuser",
		},
	} {
		t.Run(what, func(t *testing.T) {
			pg := clustertest.New(t, c.settings)
			url := pg.URL("postgres")
			if c.change != "" {
				clustertest.Exec(t, url, c.change)
				url = pg.URLFor("plain", "plain", "postgres")
			}
			refused(t, url, anyVersion, c.want)
		})
	}
	t.Run("trust", func(t *testing.T) {
		pg := clustertest.New(t, nil)
		path := text(t, pg.URL("postgres"), "SHOW hba_file")
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString("\nhost all all 10.0.0.0/8 trust\n"); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		refused(t, pg.URL("postgres"), anyVersion, "trust")
	})
}

// A machine's own server may be above the floor; the real one is held to what its version deserves.
func TestServerWithKnownHolesIsRefused(t *testing.T) {
	pg := clustertest.New(t, nil)
	url := pg.URL("postgres")
	found := floors.Server(text(t, url, "SHOW server_version"), number(t, url, "SHOW server_version_num"))
	if (floors.Policy{}).Judge(found).Below {
		refused(t, url, floors.Policy{Accept: []string{found.Text + " "}}, "--accept-versions '"+found.Text+"'")
		refused(t, url, floors.Policy{Accept: []string{"PgBouncer 1.24.1"}}, "CVE-2026-6460")
	}
	accepted := floors.Policy{Accept: []string{found.Text}}
	old := program(t, "pgbouncer", "PgBouncer 1.24.0")
	refused(t, url, accepted, old+": PgBouncer 1.24.0 is older than", old)
	refused(t, url, accepted, "no version", program(t, "pg_dump", "no version"))
	asker := strconv.Itoa(os.Geteuid())
	if asker == "0" {
		asker = "65534"
	}
	refused(t, url, accepted, "1.1 by "+asker+" is older", program(t, "pg_dump", "pg_dump (PostgreSQL) 1.1 by $(id -u)"))
	if n := text(t, url, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'pgherd%'"); n != "0" {
		t.Error("a refused server was changed")
	}
	report, err := setup.Init(t.Context(), setup.Options{
		DSN: url, CredentialsFile: filepath.Join(t.TempDir(), "credentials"), Versions: accepted, Languages: anyLanguage,
		Programs: []string{program(t, "pg_dump", "pg_dump (PostgreSQL) 99.1"), "/no/such/pgbouncer"},
	})
	missing := func(w string) bool { return strings.Contains(w, "/no/such/pgbouncer") }
	if err != nil || !slices.ContainsFunc(report.Warnings, missing) {
		t.Errorf("warnings %v, %v", report.Warnings, err)
	}
}

func number(t *testing.T, url, query string) int {
	t.Helper()
	n, err := strconv.Atoi(text(t, url, query))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// program makes a program that prints a version and nothing else.
func program(t *testing.T, name, version string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	err := os.WriteFile(path, []byte("#!/bin/sh\necho \""+version+"\"\n"), 0o755)
	if err := errors.Join(err, os.Chmod(filepath.Dir(dir), 0o755)); err != nil { // for another user than root
		t.Fatal(err)
	}
	return path
}

// refused also demands that nothing was made.
func refused(t *testing.T, url string, policy floors.Policy, want string, programs ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials")
	_, err := setup.Init(context.Background(), setup.Options{
		DSN: url, CredentialsFile: file, Versions: policy, Languages: anyLanguage, Programs: programs,
	})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want a refusal about %s", err, want)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("passwords were written all the same")
	}
}

func TestCredentialsFileIsPrivate(t *testing.T) {
	pg := clustertest.New(t, nil)
	file := filepath.Join(t.TempDir(), "credentials")
	prepare(t, pg, file)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := setup.ReadCredentials(file); err == nil {
		t.Error("a file that others can read was accepted")
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := setup.ReadCredentials(file); err == nil {
		t.Error("a file without passwords was accepted")
	}
}

func TestALedgerOfAnotherVersionIsRefused(t *testing.T) {
	pg := clustertest.New(t, nil)
	file := filepath.Join(t.TempDir(), "credentials")
	prepare(t, pg, file)
	maintenance := pg.URL(setup.MaintenanceDatabase)
	for _, change := range []string{
		"UPDATE ledger.format SET number = number + 1", "UPDATE ledger.format SET number = number - 2", "DROP TABLE ledger.format",
	} {
		clustertest.Exec(t, maintenance, change)
		_, err := setup.Init(t.Context(), setup.Options{
			DSN: pg.URL("postgres"), CredentialsFile: file, Versions: anyVersion, Languages: anyLanguage,
		})
		if err == nil || !strings.Contains(err.Error(), "make clean-dev") || strings.Contains(err.Error(), "\n") {
			t.Errorf("after %s: %v", change, err)
		}
	}
}

// A trigger on log-ins, which superusers can make from PostgreSQL 17 on, does not keep the agent out, nor does it run anything as
// the agent.
func TestTriggersOfASuperuserDoNotReachTheAgent(t *testing.T) {
	if check.Must(toolchain.Find())(t).Major < 17 {
		t.Skip("PostgreSQL 16 has no triggers on log-ins")
	}
	pg := clustertest.New(t, nil)
	_, c := prepare(t, pg, filepath.Join(t.TempDir(), "credentials"))
	clustertest.Exec(t, pg.URL("postgres"), "CREATE DATABASE shop", "CREATE ROLE shop LOGIN PASSWORD 'x'")
	for database, statement := range map[string]string{
		setup.MaintenanceDatabase: "CREATE TABLE ledger.made ()", "shop": "CREATE TEMP TABLE made ()",
	} {
		clustertest.Exec(t, pg.URL(database),
			`CREATE FUNCTION public.shut() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
				IF session_user <> 'postgres' THEN RAISE EXCEPTION 'shut'; END IF; END $$`,
			`CREATE EVENT TRIGGER shut ON login EXECUTE FUNCTION public.shut()`,
			`CREATE EVENT TRIGGER still ON ddl_command_start EXECUTE FUNCTION public.shut()`)
		clustertest.Exec(t, pg.URLFor(setup.AgentLogin, c.AgentPassword, database), statement)
	}
	if got := state(t, pg.URLFor("shop", "x", "shop"), "SELECT 1"); got != "P0001" {
		t.Errorf("others are let in: SQLSTATE %q", got)
	}
}
