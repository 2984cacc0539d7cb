package backup_test

import (
	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"

	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// A connection that breaks off says nothing about the file: the backup is verified when PostgreSQL is back.
func TestACrashOfPostgreSQLCondemnsNoFile(t *testing.T) {
	w := newOwnWorld(t)
	w.Load(backuptest.Trap("PERFORM pg_sleep(1);") + `CREATE TABLE t (n int CHECK (trap())); INSERT INTO t VALUES (1);
		CREATE MATERIALIZED VIEW m AS SELECT trap()`)
	for _, within := range []string{"COPY%", "REFRESH%", "COPY%", "REFRESH%"} {
		ended := make(chan error, 1)
		go func() {
			_, err := w.Agent.Run(context.Background(), w.Request(), backuptest.Unseen)
			ended <- err
		}()
		w.awaitHanging(`SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'verify%' AND wait_event = 'PgSleep'
			AND query LIKE '` + within + `'`)
		check.NoError(t, w.Cluster.Restart(t.Context(), cluster.Immediate))
		if err := <-ended; err == nil || fault.Has(err, fault.BackupNotVerified) {
			t.Errorf("PostgreSQL crashed within %s: %v", within, err)
		}
	}
	result, err := w.Run(w.Agent, w.Request())
	if err != nil || result.VerifiedAt == nil {
		t.Errorf("%+v, %v", result, err)
	}
	w.LeavesNothing()
}

// What PostgreSQL has lost of the copy, such as the rows of an unlogged table or who owns it, the backup has all the same.
func TestWhatACrashOfPostgreSQLTakesFromACopyCondemnsNoFile(t *testing.T) {
	w := newOwnWorld(t)
	w.Load(`CREATE UNLOGGED TABLE t AS SELECT 1 AS n`)
	for _, at := range []string{"backup.verify.restored", "backup.verify.proving", "backup.verify.granted"} {
		w.Agent.Crash = func(point string) {
			if point != at {
				return
			}
			w.Agent.Crash = func(string) {}
			if err := w.Cluster.Restart(t.Context(), cluster.Immediate); err != nil {
				t.Error(err)
			}
		}
		_, err := w.Run(w.Agent, w.Request())
		provable := at == "backup.verify.granted" // where nothing of that was lost
		if err == nil && !provable || fault.Has(err, fault.BackupNotVerified) {
			t.Errorf("PostgreSQL crashed at %s: %v", at, err)
		}
	}
	result, err := w.Run(w.Agent, w.Request())
	if err != nil || result.VerifiedAt == nil {
		t.Errorf("%+v, %v", result, err)
	}
}

// awaitHanging waits until a query counts what hangs.
func (w *world) awaitHanging(query string) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), time.Minute)
	defer cancel()
	db := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(w.T)
	for n := 0; n == 0; time.Sleep(10 * time.Millisecond) {
		check.NoError(w.T, db.QueryRowContext(ctx, query).Scan(&n))
	}
}
