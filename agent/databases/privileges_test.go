package databases_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/core/database"
)

func TestCustomersCannotReachBeyondTheirDatabase(t *testing.T) {
	agenttest.OverModelsWhole(t, testCustomersCannotReachBeyondTheirDatabase)
}

func testCustomersCannotReachBeyondTheirDatabase(t *testing.T, m database.RoleModel) {
	s := agenttest.Shared(t)
	w, other := s.MadeWithRoles(t, m), s.Made(t, database.Managed)
	theirs := s.Connected(t, other)
	for _, l := range w.Model.Logins() {
		name, password := w.Login(l)
		for _, target := range []string{other.Name, "postgres", "template1", "template0", "pgherd_maintenance"} {
			agenttest.Refused(t, string(l)+" direct at "+target, s.Direct(t, target, name, password), "SELECT 1")
		}
		for _, entry := range []string{
			other.Name, other.Name + ".transaction", "postgres", "template1", "pgherd_maintenance", "pgbouncer",
		} {
			agenttest.Refused(t, string(l)+" pooled at "+entry, s.Pooled(t, entry, name, password), "SELECT 1")
		}
		for way, db := range s.WaysOf(t, w.Present(l)) {
			agenttest.Works(t, string(l)+" "+way, db)
			for _, statement := range agenttest.ForbiddenHere() {
				if l == database.OwnerLogin || !strings.Contains(statement, "TEMP TABLE") {
					agenttest.Denied(t, string(l)+" "+way, db, agenttest.Filled(statement, w.Name, w.Names().Holder, name, other.Name))
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

func TestOwnerCanDoWhatAnOwnerNeeds(t *testing.T) {
	s := agenttest.Shared(t)
	for _, model := range []database.RoleModel{database.Managed, database.SingleLogin} {
		w := s.Made(t, model)
		db := s.PooledOwner(t, w)
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
			fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET statement_timeout = '1min'", w.Name),
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
	s := agenttest.Shared(t)
	w := agenttest.Want(database.SingleLogin)
	w.Cap = 2
	s.Done(t, w.Create())
	opened := 0
	for range 20 {
		if _, err := s.Owner(t, w).ExecContext(t.Context(), "SELECT 1"); err != nil {
			break
		}
		opened++
	}
	if opened > w.Cap+5 {
		t.Errorf("%d sessions at a cap of %d", opened, w.Cap)
	}
	s.Done(t, w.Access(2, false, true))
	if n := s.One(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = $1", w.Name); n != "0" {
		t.Errorf("%s sessions are left", n)
	}
}
