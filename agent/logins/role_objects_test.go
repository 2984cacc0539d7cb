package logins_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/role"
)

// place is where the owner keeps one thing of every kind: its objects' names begin with prefix.
type place struct {
	prefix string
	// public schema: everybody may look names up in it, and so call its functions.
	everybody bool
}

// The places that stand before the roles are made, and those that the owner makes later. %[1]s is a prefix.
var (
	earlyPlaces = []place{{"public.early_", true}, {"before.early_", false}}
	latePlaces  = []place{{"public.late_", true}, {"before.late_", false}, {"after.late_", false}}
)

var placeObjects = []string{
	"CREATE TABLE %[1]stab (id serial PRIMARY KEY, name text)", "INSERT INTO %[1]stab (name) VALUES ('a'), ('b')",
	"CREATE VIEW %[1]sview AS SELECT id, name FROM %[1]stab", "CREATE MATERIALIZED VIEW %[1]smat AS SELECT id FROM %[1]stab",
	"CREATE SEQUENCE %[1]sseq", "CREATE TYPE %[1]smood AS ENUM ('ok')", "CREATE FUNCTION %[1]sfn() RETURNS int RETURN 1",
	"CREATE FUNCTION %[1]sdefiner() RETURNS bigint SECURITY DEFINER BEGIN ATOMIC SELECT count(*) FROM %[1]stab; END",
	"CREATE TABLE %[1]sparts (id int) PARTITION BY LIST (id)", "CREATE TABLE %[1]sparts_1 PARTITION OF %[1]sparts FOR VALUES IN (1)",
	"INSERT INTO %[1]sparts VALUES (1)",
	"CREATE TABLE %[1]sguarded (id int, secret boolean)", "INSERT INTO %[1]sguarded VALUES (1, false), (2, true)",
	"ALTER TABLE %[1]sguarded ENABLE ROW LEVEL SECURITY", "CREATE POLICY shown ON %[1]sguarded USING (NOT secret)",
}

func furnish(t testing.TB, owner *sql.DB, places []place) {
	t.Helper()
	for _, p := range places {
		for _, statement := range placeObjects {
			check.Must(owner.Exec(agenttest.Filled(statement, p.prefix)))(t)
		}
	}
}

// Who may do something: profiles by their first letters, read-only, write, custom.
const (
	nobody  = ""
	writers = "w"
	readers = "rw"
	anybody = "rwc"
)

// ability is a statement, and who may run it. Where calls is set, a place in schema public lets everybody.
type ability struct {
	statement string
	who       string
	calls     bool
}

// placeAbilities are about the things of one place. %[1]s is its prefix.
var placeAbilities = []ability{
	{"TABLE %[1]stab", readers, false}, {"TABLE %[1]sview", readers, false}, {"TABLE %[1]smat", readers, false},
	{"TABLE %[1]sparts", readers, false}, {"TABLE %[1]sparts_1", readers, false}, {"TABLE %[1]sguarded", readers, false},
	{"TABLE %[1]sseq", readers, false}, {"SELECT name FROM %[1]stab WHERE id = 1", readers, false},
	{"COPY %[1]stab TO STDOUT", readers, false}, {"EXPLAIN ANALYZE SELECT FROM %[1]stab", readers, false},
	{"LOCK TABLE %[1]stab IN ACCESS SHARE MODE", readers, false},
	{"DECLARE c CURSOR FOR TABLE %[1]stab", readers, false},

	{"INSERT INTO %[1]stab (name) VALUES ('c')", writers, false}, {"INSERT INTO %[1]sparts VALUES (1)", writers, false},
	{"INSERT INTO %[1]sparts_1 VALUES (1)", writers, false}, {"INSERT INTO %[1]sview VALUES (9, 'i')", writers, false},
	{"INSERT INTO %[1]stab VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = 'y'", writers, false},
	{"UPDATE %[1]stab SET name = 'd'", writers, false}, {"UPDATE %[1]sview SET name = 'd'", writers, false},
	{"DELETE FROM %[1]stab", writers, false}, {"DELETE FROM %[1]sparts", writers, false}, {"DELETE FROM %[1]sview", writers, false},
	{"MERGE INTO %[1]stab t USING (VALUES (1)) s (id) ON t.id = s.id WHEN MATCHED THEN DELETE", writers, false},
	{"COPY %[1]stab (name) FROM STDIN", writers, false}, {"TABLE %[1]stab FOR UPDATE", writers, false},
	{"TABLE %[1]stab FOR KEY SHARE", writers, false}, {"LOCK TABLE %[1]stab IN ROW EXCLUSIVE MODE", writers, false},
	{"LOCK TABLE %[1]stab IN ACCESS EXCLUSIVE MODE", writers, false}, // so PostgreSQL lets whoever may UPDATE
	{"SELECT nextval('%[1]sseq')", writers, false}, {"SELECT nextval('%[1]sseq'); SELECT currval('%[1]sseq')", writers, false},
	{"SELECT setval('%[1]sseq', 7)", nobody, false}, {"SELECT setval('%[1]stab_id_seq', 7)", nobody, false},

	// Row security holds for additional roles as for anyone.
	{"INSERT INTO %[1]sguarded VALUES (3, false)", writers, false}, {"INSERT INTO %[1]sguarded VALUES (4, true)", nobody, false},
	{"DO $$ BEGIN IF NOT EXISTS (SELECT FROM %[1]sguarded WHERE secret) THEN RAISE 'hidden'; END IF; END $$", nobody, false},
	{"SET LOCAL row_security = off; TABLE %[1]sguarded", nobody, false},
	{"ALTER TABLE %[1]sguarded DISABLE ROW LEVEL SECURITY", nobody, false}, {"DROP POLICY shown ON %[1]sguarded", nobody, false},
	{"CREATE POLICY wide ON %[1]sguarded USING (true)", nobody, false},

	{"SELECT %[1]sfn()", readers, true}, {"SELECT %[1]sdefiner()", readers, true}, {"SELECT NULL::%[1]smood", readers, true},
	{"CREATE OR REPLACE FUNCTION %[1]sfn() RETURNS int RETURN 2", nobody, false},
	{"ALTER FUNCTION %[1]sdefiner() SECURITY INVOKER", nobody, false}, {"DROP FUNCTION %[1]sfn()", nobody, false},

	{"TRUNCATE %[1]stab", nobody, false}, {"TRUNCATE %[1]sparts_1", nobody, false},
	{"REFRESH MATERIALIZED VIEW %[1]smat", nobody, false},
	{"CREATE TABLE %[1]smine (id int REFERENCES %[1]stab)", nobody, false}, {"CREATE TABLE %[1]smine ()", nobody, false},
	{"CREATE VIEW %[1]smine AS SELECT 1", nobody, false}, {"CREATE SEQUENCE %[1]smine", nobody, false},
	{"CREATE FUNCTION %[1]smine() RETURNS int RETURN 1", nobody, false}, {"CREATE TYPE %[1]smine AS (a int)", nobody, false},
	{"CREATE DOMAIN %[1]smine AS int", nobody, false}, {"SELECT 1 INTO %[1]smine", nobody, false},
	{"CREATE TABLE %[1]smine PARTITION OF %[1]sparts DEFAULT", nobody, false},
	{
		"CREATE TRIGGER mine BEFORE UPDATE ON %[1]stab FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()", nobody,
		false,
	},
	{"CREATE RULE mine AS ON INSERT TO %[1]stab DO INSTEAD NOTHING", nobody, false},
	{"CREATE INDEX ON %[1]stab (name)", nobody, false}, {"CREATE STATISTICS ON id, name FROM %[1]stab", nobody, false},
	{"ALTER TABLE %[1]stab ADD COLUMN mine int", nobody, false}, {"ALTER TABLE %[1]stab OWNER TO CURRENT_USER", nobody, false},
	{"ALTER TABLE %[1]stab DISABLE TRIGGER ALL", nobody, false}, {"COMMENT ON TABLE %[1]stab IS 'mine'", nobody, false},
	{"DROP TABLE %[1]stab CASCADE", nobody, false}, {"ALTER SEQUENCE %[1]sseq RESTART", nobody, false},
	{"REINDEX TABLE %[1]stab", nobody, false}, {"CLUSTER %[1]stab USING tab_pkey", nobody, false},
	{"COPY %[1]stab TO '/tmp/pgherd-x'", nobody, false}, {"COPY %[1]stab TO PROGRAM 'id'", nobody, false},
	{"COPY %[1]stab FROM '/etc/passwd'", nobody, false}, {"COPY %[1]stab FROM PROGRAM 'id'", nobody, false},
}

// at is the ability at one place.
func (a ability) at(p place) ability {
	if a.calls && p.everybody {
		a.who = anybody
	}
	a.statement = agenttest.Filled(a.statement, p.prefix)
	return a
}

// databaseAbilities are about the database. %[1]s is its name, %[3]s the role, %[5]s the owner's large object.
var databaseAbilities = []ability{
	{"SELECT 1", anybody, false}, {"LISTEN news", anybody, false}, {"NOTIFY news", anybody, false},
	{"SELECT pg_advisory_xact_lock(1)", anybody, false}, {"SET LOCAL statement_timeout = '1min'", anybody, false},
	{"PREPARE p AS SELECT 1", anybody, false}, {"DO $$ BEGIN PERFORM 1; END $$", anybody, false},
	{"ALTER ROLE CURRENT_USER SET work_mem = '8MB'", anybody, false},
	{"ALTER ROLE CURRENT_USER PASSWORD NULL", anybody, false}, // a drift, which inspection shows and rotation repairs
	{"SELECT lo_create(0)", anybody, false},                   // of its own; PostgreSQL knows no privilege for that

	{"SELECT lo_get(%[5]s)", nobody, false}, {"SELECT lo_put(%[5]s, 0, 'x')", nobody, false},
	{"SELECT lo_unlink(%[5]s)", nobody, false}, {"ALTER LARGE OBJECT %[5]s OWNER TO CURRENT_USER", nobody, false},
	{"GRANT SELECT ON LARGE OBJECT %[5]s TO CURRENT_USER", nobody, false},
	{"CREATE TEMP TABLE mine ()", nobody, false}, {"CREATE TEMP VIEW mine AS SELECT 1", nobody, false},
	{"CREATE TEMP SEQUENCE mine", nobody, false}, {"SELECT 1 INTO TEMP mine", nobody, false},
	{"CREATE FUNCTION pg_temp.mine() RETURNS int RETURN 1", nobody, false},
	{"CREATE SCHEMA mine", nobody, false}, {"CREATE SCHEMA AUTHORIZATION CURRENT_USER", nobody, false},
	{"ALTER SCHEMA before OWNER TO CURRENT_USER", nobody, false}, {"DROP SCHEMA before CASCADE", nobody, false},
	{"CREATE TABLE mine ()", nobody, false}, {"CREATE EXTENSION citext", nobody, false}, {"CREATE PUBLICATION mine", nobody, false},
	{"CREATE LANGUAGE plperl", nobody, false}, {"CREATE COLLATION before.mine FROM \"C\"", nobody, false},
	{"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '%[1]s'", nobody, false},
	{"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = '%[1]s'", nobody, false},
	{"SELECT * FROM pg_largeobject", nobody, false}, {"SELECT * FROM pg_user_mapping", nobody, false},
	{"SELECT * FROM pg_statistic", nobody, false}, {"SELECT * FROM pg_backend_memory_contexts", nobody, false},
	{"REASSIGN OWNED BY \"%[1]s\" TO CURRENT_USER", nobody, false}, {"DROP OWNED BY \"%[1]s\"", nobody, false},
	{"ALTER DEFAULT PRIVILEGES FOR ROLE \"%[1]s\" GRANT ALL ON TABLES TO CURRENT_USER", nobody, false},
	{"ALTER ROLE \"%[1]s\" PASSWORD 'x'", nobody, false}, {"ALTER ROLE \"%[1]s\" SET work_mem = '8MB'", nobody, false},
	{"ALTER ROLE CURRENT_USER NOLOGIN", nobody, false}, {"DROP ROLE \"%[1]s\"", nobody, false},
	{"SET SESSION AUTHORIZATION \"%[1]s\"", nobody, false}, {"SET ROLE \"%[1]s\"", nobody, false},
}

func (a ability) of(profile role.AccessProfile) bool {
	return strings.Contains(a.who, letters[profile])
}
