package follow_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
)

// Tables whose rows PostgreSQL cannot tell apart, or not by every type, are in the way, and no others.
func TestTablesInTheWay(t *testing.T) {
	t.Parallel()
	s, w := agenttest.DatabaseStack(t)
	owner := s.Owner(t, w)
	for _, statement := range []string{
		`CREATE TABLE a_key (id int PRIMARY KEY)`, `CREATE TABLE b_none (id int)`,
		`CREATE TABLE c_late (id int PRIMARY KEY DEFERRABLE)`,
		`CREATE TABLE d_full (a int, b varchar(3), c text[], d numeric, e jsonb, f int4range)`,
		`ALTER TABLE d_full REPLICA IDENTITY FULL`,
		`CREATE TABLE e_json (a int, j json)`, `ALTER TABLE e_json REPLICA IDENTITY FULL`,
		`CREATE TABLE f_points (p point[])`, `ALTER TABLE f_points REPLICA IDENTITY FULL`,
		`CREATE TABLE g_index (a int NOT NULL UNIQUE)`, `ALTER TABLE g_index REPLICA IDENTITY USING INDEX g_index_a_key`,
		`CREATE TABLE h_nothing (id int PRIMARY KEY)`, `ALTER TABLE h_nothing REPLICA IDENTITY NOTHING`,
		`CREATE DOMAIN own AS json`, `CREATE TABLE i_domain (a own)`, `ALTER TABLE i_domain REPLICA IDENTITY FULL`,
		`CREATE TABLE j_parts (id int) PARTITION BY RANGE (id)`,
	} {
		check.Must(owner.Exec(statement))(t)
	}
	found := movable(t, s, w)
	var tables []string
	for _, o := range found.Obstacles {
		if o.Kind == command.NoIdentity {
			tables = append(tables, o.Object)
		}
	}
	want := []string{
		"public.b_none", "public.c_late", "public.e_json", "public.f_points", "public.h_nothing", "public.i_domain", "public.j_parts",
	}
	if !slices.Equal(tables, want) {
		t.Errorf("in the way are %v, want %v", tables, want)
	}
	if !slices.ContainsFunc(found.Obstacles, func(o command.Obstacle) bool { return o.Kind == command.NotLogical }) {
		t.Error("a server with wal_level = minimal can be followed")
	}
}

// Who asks for the size of a table waits for whoever has locked it: of one that is locked for long it is not asked.
func TestATableThatIsLockedHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s, w := agenttest.DatabaseStack(t)
	owner := s.Owner(t, w)
	check.Must(owner.Exec(`CREATE UNLOGGED TABLE passing (id int PRIMARY KEY)`))(t)
	unlogged := command.Obstacle{Kind: command.Unlogged, Object: "public.passing"}
	if found := movable(t, s, w); slices.Contains(found.Obstacles, unlogged) {
		t.Errorf("without rows: %+v", found.Obstacles)
	}
	locked := check.Must(owner.BeginTx(t.Context(), nil))(t)
	check.Must(locked.Exec(`LOCK TABLE passing`))(t)
	if found := movable(t, s, w); !slices.Contains(found.Obstacles, unlogged) {
		t.Errorf("locked: %+v", found.Obstacles)
	}
	check.NoError(t, locked.Rollback())
}

// A rehearsal is void once its database has something that can change what it finds, and for nothing else.
func TestWhatVoidsARehearsal(t *testing.T) {
	t.Parallel()
	s, w := agenttest.DatabaseStack(t)
	voids(t, s, w)
}

func voids(t *testing.T, s *agenttest.Stack, w agenttest.Wanted) {
	t.Helper()
	owner := s.Owner(t, w)
	for _, statement := range []string{
		`CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`,
		`CREATE TABLE t (id int PRIMARY KEY, what text CHECK (what <> 'x') UNIQUE DEFERRABLE)`,
		`CREATE INDEX t_lower ON t (lower(what)) WHERE id > 3`, `COMMENT ON INDEX t_lower IS 'in any case'`,
		`CREATE TABLE parts (id int REFERENCES t, at date DEFAULT '2026-01-01' NOT NULL, CHECK (id > 0), UNIQUE (id, at))
			PARTITION BY RANGE (at)`,
		`CREATE INDEX parts_next ON parts ((id + 1))`,
		`CREATE TRIGGER noted AFTER INSERT ON parts FOR EACH ROW EXECUTE FUNCTION f()`,
		`CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')`,
	} {
		check.Must(owner.Exec(statement))(t)
	}
	was := movable(t, s, w).SchemaSHA256
	for _, c := range []struct {
		do    string
		voids bool
	}{
		{`INSERT INTO t VALUES (1, 'a')`, false},
		{`CREATE TEMPORARY TABLE own (id int)`, false},
		{`REINDEX TABLE CONCURRENTLY t`, false},
		{`REINDEX TABLE CONCURRENTLY parts`, false},
		{`GRANT SELECT ON t TO PUBLIC`, false},
		{`GRANT UPDATE (what) ON t TO PUBLIC`, false},
		{`REVOKE EXECUTE ON FUNCTION f() FROM PUBLIC`, false},
		{`ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC`, false},
		{`GRANT CONNECT ON DATABASE "` + w.Name + `" TO ` + w.Names().Runtime, false},
		{`ALTER ROLE CURRENT_USER IN DATABASE "` + w.Name + `" SET work_mem = '5MB'`, false},
		{`CREATE TABLE parts_b PARTITION OF parts FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')`, false},
		{`CREATE TABLE parts_c (LIKE parts INCLUDING ALL, FOREIGN KEY (id) REFERENCES t);
			ALTER TABLE parts ATTACH PARTITION parts_c FOR VALUES FROM ('2026-03-01') TO ('2026-04-01')`, false},
		{`DROP TABLE parts_b`, false},
		{`ALTER TABLE parts_a ADD CHECK (id < 99)`, true},
		{`CREATE INDEX ON parts_a (at)`, true},
		{`ALTER TABLE parts_a ALTER id SET DEFAULT 7`, true},
		{`CREATE TRIGGER own AFTER INSERT ON parts_a FOR EACH ROW EXECUTE FUNCTION f()`, true},
		{`ALTER TABLE parts DETACH PARTITION parts_c`, true},
		{`ALTER TABLE t ADD more int`, true},
		{`ALTER TABLE t ALTER what SET NOT NULL`, true},
		{`ALTER TABLE t ALTER what SET DEFAULT 'y'`, true},
		{`CREATE INDEX ON t (what)`, true},
		{`CREATE OR REPLACE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'`, true},
		{`CREATE TYPE mood AS ENUM ('good')`, true},
		{`COMMENT ON TABLE t IS 'noted'`, true},
	} {
		check.Must(owner.Exec(c.do))(t)
		now := movable(t, s, w).SchemaSHA256
		if (now != was) != c.voids {
			t.Errorf("%s: voids a rehearsal: %t, want %t", c.do, now != was, c.voids)
		}
		was = now
	}
}

// movable asks again where the server could not be asked.
func movable(t *testing.T, s *agenttest.Stack, w agenttest.Wanted) (found command.Movable) {
	t.Helper()
	check.Eventually(t, "nobody says whether it can be moved", func() bool {
		status, text, err := s.Request(http.MethodGet, "/v1/databases/"+w.ID+"/movable", nil)
		if err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable {
			t.Fatal(status, string(text), err)
		}
		return status == http.StatusOK && json.Unmarshal(text, &found) == nil
	})
	return found
}
