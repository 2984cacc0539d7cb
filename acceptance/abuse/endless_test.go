package abuse_test

import (
	"context"
	"testing"
	"time"
)

// What one customer has PostgreSQL do without end, in what all share and no quota counts.

// standsInWorkers is a table whose ANALYZE has no end in a worker of autovacuum; each number is one of them.
var standsInWorkers = []string{
	`CREATE FUNCTION slow(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
		IF session_user <> current_user THEN PERFORM pg_catalog.pg_sleep(1000); END IF; RETURN $1; END $$`,
	`DO $$ BEGIN FOR n IN 1 .. 10 LOOP
		EXECUTE format('CREATE TABLE stands_%s AS SELECT n FROM generate_series(1, 1000) n', n);
		EXECUTE format('CREATE INDEX ON stands_%s (public.slow(n))', n); END LOOP; END $$`,
}

var heldWorkers = counted("workers in a customer's code", 0, sleepingWorkers)

// sleepingWorkers are those that run a customer's code.
const sleepingWorkers = `SELECT count(*) FROM pg_stat_activity
	WHERE backend_type = 'autovacuum worker' AND wait_event = 'PgSleep'`

// holdWorkers has all workers of autovacuum compute without end.
func holdWorkers(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	for _, s := range []string{"ALTER SYSTEM SET autovacuum_naptime = '1s'", "SELECT pg_reload_conf()"} {
		must(m.asSuperuser.ExecContext(soon(t), s))(t)
	}
	d := m.database(t, "stands", standsInWorkers...)
	db := m.at(t, d.Name, d.Username, d.Password)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, s := range []string{"ALTER SYSTEM RESET autovacuum_naptime", "SELECT pg_reload_conf()"} {
			_, err := m.asSuperuser.ExecContext(ctx, s)
			noError(t, err)
		}
		_, err := db.ExecContext(ctx, "DROP FUNCTION slow CASCADE")
		noError(t, err)
	})
	busy := func(t *testing.T) {
		t.Helper()
		for n, ctx := 0, soon(t); n < 1; time.Sleep(50 * time.Millisecond) {
			noError(t, m.asSuperuser.QueryRowContext(ctx, sleepingWorkers).Scan(&n))
		}
	}
	busy(t)
	return busy
}

// logMuch says as much as the server's log takes.
func logMuch(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	d := m.database(t, "logs")
	db := m.at(t, d.Name, d.Username, d.Password)
	again(t, func(ctx context.Context) {
		_, _ = db.ExecContext(ctx, "DO $$ BEGIN RAISE LOG '%', repeat('x', 10000000); END $$") // it says it again
	})
	return nil
}

// serverLog is what may be added beside: the service's own lines.
var serverLog = counted("bytes of the server's log", 1<<20,
	"SELECT size FROM pg_stat_file(current_setting('data_directory') || '/../postgres.log')")

// exportSnapshots makes files of them.
func exportSnapshots(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	d := m.database(t, "exports")
	db := m.at(t, d.Name, d.Username, d.Password)
	again(t, func(ctx context.Context) {
		_, err := db.ExecContext(ctx, "DO $$ BEGIN LOOP PERFORM pg_export_snapshot(); END LOOP; END $$")
		if err != nil {
			wait(ctx, 100*time.Millisecond)
		}
	})
	return nil
}

// exportedSnapshots also has those of backups.
var exportedSnapshots = counted("exported snapshots", 10, "SELECT count(*) FROM pg_ls_dir('pg_snapshots')")
