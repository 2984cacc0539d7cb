package backup_test

import (
	"github.com/pgherd/pgherd/acceptance/check"

	"testing"

	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// A query over a table would run the functions in its indexes and statistics while it is planned, as the agent, who may make
// roles: a backup would be the customer's way to every other database.
func TestNoCodeOfTheCustomersRunsAsTheAgent(t *testing.T) {
	w := newWorld(t)
	w.Load(`
		CREATE FUNCTION public.take() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
			EXECUTE 'CREATE ROLE taken_over CREATEROLE';
			RETURN 1;
		END $$;
		CREATE FUNCTION public.backuptest.Trap(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
			IF session_user = 'pgherd_agent' AND pg_catalog.current_setting('transaction_read_only') = 'on' THEN
				RAISE 'run as the agent';
			ELSIF session_user = 'pgherd_agent' THEN
				PERFORM public.take();
			END IF;
			RETURN n;
		END $$;
		CREATE TABLE t (a int CHECK (public.trap(1) = 1), b int GENERATED ALWAYS AS (public.trap(2)) STORED);
		CREATE INDEX ON t (public.trap(3));
		CREATE INDEX ON t (a) WHERE public.trap(4) = 4;
		CREATE STATISTICS s ON (a + public.trap(5)), a FROM t;
		ALTER TABLE t ENABLE ROW LEVEL SECURITY;
		CREATE POLICY p ON t USING (public.trap(6) = 6);
		CREATE TABLE parts (a int) PARTITION BY LIST ((a + public.trap(7)));
		CREATE TABLE part PARTITION OF parts DEFAULT;
		INSERT INTO t SELECT generate_series(1, 3);
		INSERT INTO part SELECT generate_series(1, 2);`)
	result := check.Must(w.Run(w.Agent, w.Request()))(t)
	if rows := result.Manifest.Contents.Rows; rows["public.t"] != 3 || rows["public.part"] != 2 {
		t.Errorf("rows %v", rows)
	}
	var taken bool
	db := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(t)
	if err := db.QueryRow(`SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = 'taken_over')`).Scan(&taken); err != nil || taken {
		t.Errorf("the customer's code made a role: %v, %v", taken, err)
	}
}

func TestRowsAreCountedWhateverTheColumns(t *testing.T) {
	w := newWorld(t)
	w.Load(`
		CREATE TABLE none (); INSERT INTO none DEFAULT VALUES; INSERT INTO none DEFAULT VALUES;
		CREATE TABLE made (a int GENERATED ALWAYS AS (1) STORED); INSERT INTO made DEFAULT VALUES;
		CREATE TABLE "odd "" name" ("odd "" column" text, dropped int); ALTER TABLE "odd "" name" DROP dropped;
		INSERT INTO "odd "" name" VALUES (E'a\nb\\.\n'), (NULL), ('');
		CREATE TABLE parent (a int); CREATE TABLE child () INHERITS (parent);
		INSERT INTO parent VALUES (1); INSERT INTO child VALUES (1), (2);
		CREATE TABLE hidden (a int); INSERT INTO hidden VALUES (1);
		ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; ALTER TABLE hidden FORCE ROW LEVEL SECURITY;
		CREATE TABLE empty (a int);`)
	result := check.Must(w.Run(w.Agent, w.Request()))(t)
	rows := result.Manifest.Contents.Rows
	for name, want := range map[string]int64{
		"public.none": 2, "public.made": 1, `public."odd "" name"`: 3, "public.parent": 1, "public.child": 2, "public.hidden": 1,
		"public.empty": 0,
	} {
		if got, counted := rows[name]; !counted || got != want {
			t.Errorf("%s: %d rows, want %d (counted: %v)", name, got, want, counted)
		}
	}
}
