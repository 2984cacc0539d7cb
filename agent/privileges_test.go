package agent_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/database"
)

// forbidden is what no customer's login may do. %[1]s is its database, %[2]s its holder, %[3]s itself, %[4]s somebody else's
// database and login.
var forbidden = []string{
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
	`CREATE EXTENSION file_fdw`, `CREATE EXTENSION dblink`, `CREATE EXTENSION postgres_fdw`, `CREATE EXTENSION adminpack`,
	`LOAD 'auto_explain'`,
	// Roles and databases.
	`CREATE ROLE other_role`, `CREATE DATABASE other_database`, `CREATE TABLESPACE other LOCATION '/tmp'`,
	`CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION nothing()`,
	`CREATE PUBLICATION p FOR ALL TABLES`, `CREATE SUBSCRIPTION x CONNECTION 'host=localhost' PUBLICATION y WITH (connect=false)`,
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

func TestCustomersCannotReachBeyondTheirDatabase(t *testing.T) {
	overModelsWhole(t, testCustomersCannotReachBeyondTheirDatabase)
}

func testCustomersCannotReachBeyondTheirDatabase(t *testing.T, m database.RoleModel) {
	s := realStack(t)
	w, other := s.madeWithRoles(t, m), s.made(t, database.Managed)
	theirs := s.connected(t, other)
	for _, l := range w.model.Logins() {
		name, password := w.login(l)
		for _, target := range []string{other.name, "postgres", "template1", "template0", "pgherd_maintenance"} {
			refused(t, string(l)+" direct at "+target, s.direct(t, target, name, password), "SELECT 1")
		}
		for _, entry := range []string{
			other.name, other.name + ".transaction", "postgres", "template1", "pgherd_maintenance", "pgbouncer",
		} {
			refused(t, string(l)+" pooled at "+entry, s.pooled(t, entry, name, password), "SELECT 1")
		}
		for way, db := range s.waysOf(t, w.present(l)) {
			works(t, string(l)+" "+way, db)
			for _, statement := range forbidden {
				if l == database.OwnerLogin || !strings.Contains(statement, "TEMP TABLE") {
					denied(t, string(l)+" "+way, db, filled(statement, w.name, w.names().Holder, name, other.name))
				}
			}
		}
	}
	for what, conn := range theirs {
		if _, err := conn.ExecContext(t.Context(), "SELECT 1"); err != nil {
			t.Errorf("the other database's %s: %v", what, err)
		}
	}
}

// denied demands that PostgreSQL itself forbids a statement, and not merely fails to understand it: 42501 is no privilege, 0A000
// "session user cannot be renamed", P0001 our own word in a DO block.
func denied(t testing.TB, what string, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	switch sqlState(err) {
	case "42501", "0A000", "P0001":
	default:
		t.Errorf("%s: %s: %v", what, statement, err)
	}
}

// filled takes only the arguments that the statement names.
func filled(statement string, args ...string) string {
	for i, a := range args {
		statement = strings.ReplaceAll(statement, fmt.Sprintf("%%[%d]s", i+1), a)
	}
	return statement
}

func TestOwnerCanDoWhatAnOwnerNeeds(t *testing.T) {
	s := realStack(t)
	for _, model := range []database.RoleModel{database.Managed, database.SingleLogin} {
		w := s.made(t, model)
		db := s.pooledOwner(t, w)
		for _, statement := range []string{
			"CREATE EXTENSION citext", "CREATE EXTENSION pg_trgm", "CREATE EXTENSION pgcrypto",
			"CREATE SCHEMA app", "CREATE TABLE app.orders (id bigserial PRIMARY KEY, at timestamptz DEFAULT now())",
			"CREATE TABLE things (id serial PRIMARY KEY, name citext, owner text DEFAULT current_user)",
			"CREATE INDEX ON things USING gin (name gin_trgm_ops)", "CREATE TYPE mood AS ENUM ('ok')",
			"CREATE VIEW names AS SELECT name FROM things", "CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM things",
			"REFRESH MATERIALIZED VIEW counted",
			"CREATE FUNCTION twice(i int) RETURNS int LANGUAGE sql AS 'SELECT 2 * i'",
			"CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
			"CREATE TRIGGER t BEFORE INSERT ON things FOR EACH ROW EXECUTE FUNCTION stamp()",
			"ALTER TABLE things ENABLE ROW LEVEL SECURITY", "CREATE POLICY all_of_it ON things USING (true) WITH CHECK (true)",
			"CREATE PUBLICATION p FOR TABLE things", "CREATE TEMP TABLE scratch (id int)", "ANALYZE", "VACUUM things",
			"INSERT INTO things (name) VALUES ('a')", "SELECT lo_create(0)", "ALTER ROLE CURRENT_USER SET work_mem = '8MB'",
			fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET statement_timeout = '1min'", w.name),
			"CREATE SCHEMA gone", "DROP SCHEMA gone", "COMMENT ON TABLE things IS 'x'", "LISTEN news", "NOTIFY news",
			"SELECT pg_advisory_lock(1)", "SELECT pg_advisory_unlock(1)",
		} {
			if _, err := db.Exec(statement); err != nil {
				t.Errorf("%s: %s: %v", model, statement, err)
			}
		}
	}
}

func TestConnectionCapHoldsAndLeavesRoomForTheAgent(t *testing.T) {
	s := realStack(t)
	w := want(database.SingleLogin)
	w.cap = 2
	s.done(t, w.create())
	opened := 0
	for range 20 {
		if _, err := s.owner(t, w).ExecContext(t.Context(), "SELECT 1"); err != nil {
			break
		}
		opened++
	}
	if opened > w.cap+5 {
		t.Errorf("%d sessions at a cap of %d", opened, w.cap)
	}
	s.done(t, w.access(2, false, true))
	if n := s.one(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = $1", w.name); n != "0" {
		t.Errorf("%s sessions are left", n)
	}
}
