package agenttest

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// Made is a database that a test has made, with all its logins connected.
func (s *Stack) Made(t testing.TB, model database.RoleModel) Wanted {
	t.Helper()
	w := Want(model)
	s.Done(t, w.Create())
	return w
}

// DatabaseStack is Shared with a database of a test's own.
func DatabaseStack(t testing.TB) (*Stack, Wanted) {
	t.Helper()
	s := Shared(t)
	return s, s.Made(t, database.Managed)
}

// Connected opens one connection of every login in every way, and keeps it.
func (s *Stack) Connected(t testing.TB, w Wanted) map[string]*sql.Conn {
	t.Helper()
	conns := map[string]*sql.Conn{}
	for _, l := range w.Model.Logins() {
		for way, conn := range s.ConnectedAs(t, w.Present(l)) {
			conns[string(l)+" "+way] = conn
		}
	}
	return conns
}

// NoTrace checks that nothing of a database stands: in PostgreSQL or in our tables.
func (s *Stack) NoTrace(t testing.TB, w Wanted) {
	t.Helper()
	n := w.Names()
	for what, query := range map[string]string{
		"roles":     `SELECT count(*) FROM pg_roles WHERE rolname IN ($1, $2, $3, $4, $5, $6) AND $7 <> ''`,
		"databases": `SELECT count(*) FROM pg_database WHERE datname IN ($1, $7) AND '' NOT IN ($2, $3, $4, $5, $6)`,
		"ledger": `SELECT (SELECT count(*) FROM ledger.database WHERE name = $1) +
			(SELECT count(*) FROM ledger.role WHERE name IN ($1, $2, $3, $4, $5, $6)) +
			(SELECT count(*) FROM pooler.gate WHERE login IN ($1, $2, $3)) WHERE $7 <> ''`,
	} {
		temporary := "tmp_" + Compact(w.Operation)
		if got := s.One(t, query, n.Owner, n.Runtime, n.Readonly, n.Holder, n.ReadGroup, n.WriteGroup, temporary); got != "0" {
			t.Errorf("%s %s left of %s", got, what, w.Name)
		}
	}
}

// Supported is the version of an extension on the PostgreSQL that the tests run on.
func Supported(name extension.Name) string { return name.Version(Major()) }

// Major is the major version of the PostgreSQL that the tests run on.
var Major = sync.OnceValue(func() int {
	tools, err := toolchain.Find()
	if err != nil {
		panic(err) // no stack would have started
	}
	return tools.Major
})

// Change is the command that changes an extension.
func (w Wanted) Change(kind extension.Change, name extension.Name) protocol.Command {
	return Told(NewUUID(), 1, command.ChangeExtension{
		DatabaseID: w.DatabaseID(), Extension: name, Change: kind, Version: Supported(name),
	})
}

// SuperIn opens the database as the superuser.
func (s *Stack) SuperIn(t testing.TB, w Wanted) *sql.DB { return Open(t, s.PG.URL(w.Name)) }

// PoolerEntries reads the entries that PgBouncer's main file names.
func (s *Stack) PoolerEntries(t testing.TB) (text string) {
	t.Helper()
	check.Eventually(t, "PgBouncer's files are replaced all the time", func() bool {
		main := check.Must(os.ReadFile(pooler.ConfigFile(s.Config.Pooler.Dir)))(t)
		_, path, _ := strings.Cut(string(main), "%include ")
		path, _, _ = strings.Cut(path, "\n")
		entries, err := os.ReadFile(path)
		text = string(entries)
		return err == nil
	})
	return text
}

// Forbidden is what no customer's login may do. %[1]s is its database, %[2]s its holder, %[3]s itself, %[4]s somebody else's
// database and login.
var Forbidden = []string{
	// Secrets and files.
	`SELECT rolpassword FROM pg_authid`, `SELECT passwd FROM pg_shadow`, `TABLE pg_hba_file_rules`, `SHOW data_directory`,
	`SELECT pg_read_file('/etc/passwd')`, `SELECT pg_read_binary_file('PG_VERSION')`, `SELECT pg_ls_dir('.')`,
	`SELECT pg_stat_file('PG_VERSION')`, `SELECT pg_ls_logdir()`, `SELECT pg_current_logfile()`,
	`SELECT lo_import('/etc/passwd')`, `DO $$ BEGIN PERFORM lo_export(lo_create(0), '/tmp/x'); END $$`,
	`COPY (SELECT 1) TO '/tmp/x'`, `COPY (SELECT 1) TO PROGRAM 'id'`,
	`DO $$ BEGIN CREATE TEMP TABLE f (t text); COPY f FROM '/etc/passwd'; END $$`,
	`DO $$ BEGIN CREATE TEMP TABLE g (t text); COPY g FROM PROGRAM 'id'; END $$`,
	`CREATE FUNCTION evil() RETURNS int LANGUAGE c AS '/tmp/evil', 'evil'`,
	`CREATE FUNCTION evil() RETURNS int LANGUAGE internal AS 'int4pl'`,
	`CREATE EXTENSION file_fdw`, `CREATE EXTENSION dblink`, `CREATE EXTENSION postgres_fdw`, `CREATE EXTENSION pageinspect`,
	`LOAD 'auto_explain'`,
	// Roles and databases.
	`CREATE ROLE other_role`, `CREATE DATABASE other_database`, `CREATE TABLESPACE other LOCATION '/tmp'`,
	`CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION nothing()`,
	`CREATE PUBLICATION p FOR ALL TABLES`, `CREATE SUBSCRIPTION x CONNECTION 'host=localhost' PUBLICATION y WITH (connect=false)`,
	`SELECT pg_create_logical_replication_slot('s', 'pgoutput')`, `SELECT pg_create_physical_replication_slot('s')`,
	`ALTER DATABASE "%[1]s" RENAME TO elsewhere`, `ALTER DATABASE "%[1]s" OWNER TO "%[3]s"`, `DROP DATABASE "%[1]s"`,
	`ALTER DATABASE "%[1]s" SET statement_timeout = '1s'`, `ALTER DATABASE "%[1]s" ALLOW_CONNECTIONS false`,
	`COMMENT ON DATABASE "%[1]s" IS 'mine'`, `ALTER DATABASE postgres SET work_mem = '1GB'`,
	// Limits.
	`ALTER DATABASE "%[1]s" CONNECTION LIMIT -1`, `ALTER ROLE "%[3]s" CONNECTION LIMIT -1`, `ALTER ROLE ALL SET work_mem = '1GB'`,
	`ALTER ROLE "%[3]s" VALID UNTIL 'infinity'`, `ALTER ROLE "%[3]s" SUPERUSER`, `ALTER ROLE "%[3]s" CREATEROLE`,
	`ALTER ROLE "%[3]s" CREATEDB`, `ALTER ROLE "%[3]s" BYPASSRLS`, `ALTER ROLE "%[3]s" REPLICATION`,
	`ALTER ROLE "%[3]s" RENAME TO me`,
	`ALTER SYSTEM SET max_connections = 1`, `SET log_statement = 'all'`, `SET session_replication_role = 'replica'`,
	`SELECT pg_reload_conf()`, `CHECKPOINT`,
	// Becoming somebody else.
	`SET ROLE "%[2]s"`, `SET ROLE pgherd_agent`, `SET ROLE pgherd_pooler`, `SET ROLE postgres`, `SET ROLE pg_read_all_data`,
	`SET SESSION AUTHORIZATION postgres`, `SET SESSION AUTHORIZATION pgherd_agent`, `SET ROLE "%[4]s"`,
	`GRANT "%[2]s" TO "%[3]s"`, `GRANT pgherd_agent TO "%[3]s"`, `GRANT pg_read_server_files TO "%[3]s"`,
	`GRANT "%[4]s" TO "%[3]s"`, `ALTER ROLE "%[4]s" PASSWORD 'x'`, `ALTER ROLE pgherd_agent PASSWORD 'x'`, `DROP ROLE "%[4]s"`,
	`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ('pgherd_agent', 'pgherd_pooler', '%[4]s')`,
	`GRANT CONNECT ON DATABASE "%[4]s" TO "%[3]s"`, `REVOKE CONNECT ON DATABASE "%[4]s" FROM "%[4]s"`,
	`DO $$ BEGIN IF has_database_privilege('postgres', 'CONNECT') OR has_database_privilege('template1', 'CONNECT')
		OR has_database_privilege('pgherd_maintenance', 'CONNECT, TEMPORARY') OR has_database_privilege('%[4]s', 'CONNECT, TEMPORARY')
		THEN RETURN; END IF; RAISE 'no privilege'; END $$`,
}

// forbiddenSince is what is forbidden besides, by the first major version of PostgreSQL that knows it: earlier ones do not
// understand it.
var forbiddenSince = map[int][]string{
	17: {
		`CREATE EVENT TRIGGER e ON login EXECUTE FUNCTION nothing()`, `SET event_triggers = off`,
		`GRANT pg_maintain TO "%[3]s"`, `SET ROLE pg_maintain`,
		`ALTER SYSTEM RESET allow_alter_system`, `SELECT pg_sync_replication_slots()`,
		`ALTER ROLE pgherd_agent SET transaction_timeout = '1ms'`, `ALTER DATABASE "%[1]s" SET transaction_timeout = '1ms'`,
		`ALTER ROLE ALL SET transaction_timeout = '1ms'`, `ALTER ROLE "%[4]s" SET transaction_timeout = '1ms'`,
	},
	18: {
		`GRANT pg_signal_autovacuum_worker TO "%[3]s"`, `SET ROLE pg_signal_autovacuum_worker`,
		`SELECT pg_clear_relation_stats('pg_catalog', 'pg_class')`, `SET log_lock_failures = on`,
		`SET extension_control_path = '/tmp'`, `ALTER ROLE "%[3]s" SET extension_control_path = '/tmp'`,
		`ALTER DATABASE "%[1]s" SET file_copy_method = 'clone'`,
	},
}

// ForbiddenHere is Forbidden with what the PostgreSQL that the tests run on knows besides.
func ForbiddenHere() (all []string) {
	all = slices.Clone(Forbidden)
	for since, list := range forbiddenSince {
		if Major() >= since {
			all = append(all, list...)
		}
	}
	return all
}

// Denied demands that PostgreSQL itself forbids a statement, and not merely fails to understand it: 42501 is no privilege, 0A000
// "session user cannot be renamed", P0001 our own word in a DO block.
func Denied(t testing.TB, what string, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	switch SQLState(err) {
	case "42501", "0A000", "P0001":
	default:
		t.Errorf("%s: %s: %v", what, statement, err)
	}
}

// Filled takes only the arguments that the statement names.
func Filled(statement string, args ...string) string {
	for i, a := range args {
		statement = strings.ReplaceAll(statement, fmt.Sprintf("%%[%d]s", i+1), a)
	}
	return statement
}

// RightsIn is what the agent says of the rights inside a database.
func (s *Stack) RightsIn(t testing.TB, w Wanted) (has command.Rights) {
	t.Helper()
	began := time.Now()
	status, text, err := s.Request(http.MethodGet, "/v1/databases/"+w.ID+"/rights", nil)
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
