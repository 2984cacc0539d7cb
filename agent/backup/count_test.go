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
		CREATE FUNCTION public.trap(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
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
