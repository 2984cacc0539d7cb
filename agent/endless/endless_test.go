package endless_test

import (
	"database/sql"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/endless"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// hostile have functions that return at once for the customer, and never in a worker of autovacuum. The first even catches that
// it is canceled.
var hostile = []string{
	`CREATE FUNCTION deaf(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
		WHILE session_user <> current_user LOOP
			BEGIN PERFORM pg_catalog.pg_sleep(1000); EXCEPTION WHEN query_canceled THEN NULL; END;
		END LOOP; RETURN $1; END $$`,
	`CREATE FUNCTION slow(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
		IF session_user <> current_user THEN PERFORM pg_catalog.pg_sleep(1000); END IF; RETURN $1; END $$`,
	`CREATE TABLE in_index (n int)`, `CREATE INDEX ON in_index (public.deaf(n))`,
	`CREATE TABLE in_statistics (n int)`, `CREATE STATISTICS of_slow ON (public.slow(n)) FROM in_statistics`,
	`CREATE TABLE in_brin (n int) WITH (autovacuum_vacuum_insert_threshold = 100)`,
	`CREATE INDEX in_brin_index ON in_brin USING brin (public.slow(n)) WITH (pages_per_range = 1)`,
	`INSERT INTO in_index SELECT generate_series(1, 1000)`, `INSERT INTO in_statistics SELECT generate_series(1, 1000)`,
	`INSERT INTO in_brin SELECT generate_series(1, 100000)`, `ALTER TABLE in_brin SET (autovacuum_vacuum_cost_delay = 0)`,
}

// The workers of autovacuum come back to all databases, whatever one customer has put into theirs.
func TestACustomerKeepsNoWorkers(t *testing.T) {
	t.Parallel()
	pg := clustertest.New(t, map[string]string{"autovacuum_naptime": "1s"})
	s := agenttest.New(t, pg, t.TempDir()).Start(t) // its own agent is patient
	hostiles, bystander := s.Made(t, database.SingleLogin), s.Made(t, database.SingleLogin)
	owner := s.Owner(t, hostiles)
	for _, statement := range hostile {
		check.Must(owner.Exec(statement))(t)
	}
	check.Eventually(t, "a worker is free", func() bool {
		return s.One(t, `SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'
			AND wait_event = 'PgSleep'`) == "3"
	})
	mine := s.Owner(t, bystander)
	check.Must(mine.Exec("CREATE TABLE things AS SELECT generate_series(1, 1000) AS n"))(t)

	core, log := observer.New(zap.WarnLevel)
	secrets := check.Must(setup.ReadCredentials(s.Config.CredentialsFile))(t)
	as := func(name string) (*sql.DB, error) {
		return sql.Open("postgres", pg.URLFor(setup.AgentLogin, secrets.AgentPassword, name))
	}
	w := endless.New(check.Must(as(setup.MaintenanceDatabase))(t), as,
		endless.Bounds{First: 3 * time.Second, Again: time.Second}, zap.New(core))
	go w.Run(t.Context())
	check.Eventually(t, "nobody's tables are analyzed", func() bool {
		var analyzed int
		check.NoError(t, mine.QueryRow("SELECT autoanalyze_count FROM pg_stat_user_tables WHERE relname = 'things'").Scan(&analyzed))
		return analyzed > 0
	})
	check.Eventually(t, "not every table is named", func() bool {
		tasks := map[any]bool{}
		for _, line := range log.FilterFieldKey("task").All() {
			tasks[line.ContextMap()["task"]] = true
		}
		return tasks["autovacuum: ANALYZE public.in_index"] && tasks["autovacuum: ANALYZE public.in_statistics"] &&
			(tasks["autovacuum: VACUUM public.in_brin"] || tasks["autovacuum: VACUUM ANALYZE public.in_brin"])
	})
	if n := w.Ended().Tasks; n < 3 {
		t.Errorf("%d tasks were counted", n)
	}

	// A worker that freezes a table waits for the lock of an idle session, however long.
	check.Must(mine.Exec("CREATE TABLE held () WITH (autovacuum_freeze_max_age = 100000)"))(t)
	holder := check.Must(s.Owner(t, bystander).Begin())(t)
	check.Must(holder.Exec("LOCK held IN SHARE UPDATE EXCLUSIVE MODE"))(t)
	check.Must(mine.Exec("DO $$ BEGIN FOR n IN 1 .. 101000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"))(t)
	check.Eventually(t, "a worker waits", func() bool {
		return log.FilterField(zap.String("task", "autovacuum: VACUUM public.held (to prevent wraparound)")).
			FilterField(zap.String("was", "waiting")).Len() > 0
	})
	check.NoError(t, holder.Rollback())
}

// The function of the superuser's ends nothing but what it is for.
func TestWhatTheFunctionDoesNotEnd(t *testing.T) {
	s := agenttest.Shared(t)
	w := s.Made(t, database.SingleLogin)
	owner := s.Owner(t, w)
	var pid int
	var begun time.Time
	check.NoError(t, owner.QueryRow("SELECT pg_backend_pid()").Scan(&pid))
	check.NoError(t, s.Super.QueryRow("SELECT query_start - interval '1 h' FROM pg_stat_activity WHERE pid = $1", pid).Scan(&begun))
	if got := s.One(t, "SELECT coalesce(server.end_autovacuum($1, $2, true)::text, 'nothing')", pid, begun); got != "nothing" {
		t.Errorf("a customer's session: %s", got)
	}
	agenttest.Works(t, "the customer", owner)
	const query = "SELECT has_function_privilege($1, 'server.end_autovacuum(int, timestamptz, boolean)', 'EXECUTE')::text"
	if got := s.One(t, query, w.Name); got != "false" {
		t.Error("a customer may call it")
	}
}

// Who exports snapshots in a loop is ended, with what was exported. A parallel pg_dump exports one.
func TestACustomerExportsFewSnapshots(t *testing.T) {
	s := agenttest.Shared(t)
	w := s.Made(t, database.SingleLogin)
	dumps, loops := s.Owner(t, w), s.Owner(t, w)
	exported := func(db *sql.DB, count int) *sql.Tx {
		tx := check.Must(db.Begin())(t)
		check.Must(tx.Exec("SELECT pg_export_snapshot() FROM generate_series(1, $1)", count))(t)
		return tx
	}
	dump, loop := exported(dumps, 1), exported(loops, 1000)
	check.Eventually(t, "the session goes on", func() bool {
		_, err := loop.Exec("SELECT 1")
		return err != nil
	})
	check.Eventually(t, "files are left", func() bool { return s.One(t, "SELECT count(*) FROM pg_ls_dir('pg_snapshots')") == "1" })
	check.Must(dump.Exec("SELECT 1"))(t)
	check.NoError(t, dump.Rollback())
}
