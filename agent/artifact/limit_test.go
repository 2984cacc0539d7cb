package artifact_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// traps are customers' scripts that keep a restore from ending, with what names the statement. They do nothing where they are
// loaded.
var traps = map[string]struct{ script, named string }{
	"a CHECK that sleeps": {
		trap("PERFORM pg_sleep(600);") + `CREATE TABLE t (n int CHECK (trap())); INSERT INTO t VALUES (1)`,
		`, TABLE DATA public.t: "COPY public.t (n) FROM stdin;`,
	},
	"a CHECK that catches the cancel": {
		trap("LOOP BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP;") +
			`CREATE TABLE t (n int CHECK (trap())); INSERT INTO t VALUES (1)`,
		`, TABLE DATA public.t: "COPY public.t (n) FROM stdin;`,
	},
	"a view that sleeps under another name": {
		trap("PERFORM set_config('application_name', 'mine', false); PERFORM pg_sleep(600);") +
			`CREATE MATERIALIZED VIEW m AS SELECT trap()`,
		`, MATERIALIZED VIEW DATA public.m: "REFRESH MATERIALIZED VIEW public.m;"`,
	},
}

// What runs at a restore is a customer's. It is ended from outside, and the statement is named.
func TestAVerificationThatNeverEndsIsEnded(t *testing.T) {
	for name, c := range traps {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.load(c.script)
			config := w.config()
			config.Limits = backup.Limits{VerifyFactor: 1, VerifyLeast: 2 * time.Second}
			began := time.Now()
			_, err := w.run(artifact.New(config, w.files), w.request())
			if !fault.Has(err, fault.BackupNotVerified) || !strings.Contains(err.Error(), "its verification took longer than ") ||
				!strings.Contains(err.Error(), c.named) {
				t.Errorf("%v", err)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			if left := w.leftovers(); left != "" {
				t.Errorf("left: %s", left)
			}
			if _, _, err := w.files.Open(databaseID, filename); err != nil {
				t.Errorf("the file is gone: %v", err)
			}
		})
	}
}

// A process that did not make the dump knows from the files how long it took.
func TestTheLimitOfAVerificationOutlivesTheProcess(t *testing.T) {
	w := newWorld(t)
	w.load(traps["a CHECK that sleeps"].script)
	req := w.request()
	req.Verify = false
	result, err := w.run(w.agent, req)
	if err != nil {
		t.Fatal(err)
	}
	made := result.Manifest.CreatedAt.Add(1500 * time.Millisecond)
	manifest := strings.TrimSuffix(string(filename), ".sql.gz") + ".manifest.json"
	if err := os.Chtimes(filepath.Join(w.root, string(databaseID), manifest), made, made); err != nil {
		t.Fatal(err)
	}
	config := w.config()
	config.Limits = backup.Limits{VerifyFactor: 2, VerifyLeast: time.Millisecond}
	_, err = w.run(artifact.New(config, w.files), w.request())
	if !fault.Has(err, fault.BackupNotVerified) || !strings.Contains(err.Error(), "took longer than 3s") {
		t.Errorf("twice 1.5 s: %v", err)
	}
}

// A dump that passes its limit leaves nothing, and says so in words for the customer.
func TestADumpThatTakesTooLongIsEnded(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t (n int)`)
	defer w.lock("t")()
	config := w.config()
	config.LockWait, config.Limits = time.Minute, backup.Limits{Dump: time.Second}
	began := time.Now()
	_, err := w.run(artifact.New(config, w.files), w.request())
	var late *artifact.TooLongError
	if !errors.As(err, &late) || late.Error() != "the dump took longer than 1s" {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	w.nothingLeft()
}

// What is canceled ends soon, whatever a customer's code does.
func TestACancelEndsWhatHangs(t *testing.T) {
	for name, c := range traps {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.load(c.script)
			w.endsSoon(`SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'verify%' AND wait_event = 'PgSleep'`)
		})
	}
	t.Run("a dump that waits for a lock", func(t *testing.T) {
		w := newWorld(t)
		w.load(`CREATE TABLE t (n int)`)
		defer w.lock("t")()
		w.endsSoon(`SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgherd-backup-%' AND wait_event_type = 'Lock'`)
		w.nothingLeft()
	})
}

// lock locks a table until unlock.
func (w *world) lock(table string) (unlock func()) {
	w.t.Helper()
	tx, err := clustertest.Database{URL: w.patient("shop")}.Open(w.t).Begin()
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Exec(`LOCK TABLE ` + table + ` IN ACCESS EXCLUSIVE MODE`); err != nil {
		w.t.Fatal(err)
	}
	return func() { _ = tx.Rollback() } // it only holds the lock
}

// endsSoon cancels a backup once a query counts what hangs.
func (w *world) endsSoon(hanging string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := w.agent.Run(ctx, w.request(), unseen)
		ended <- err
	}()
	w.awaitHanging(hanging)
	began := time.Now()
	cancel()
	if err := <-ended; err == nil || fault.Has(err, fault.BackupNotVerified) {
		w.t.Errorf("canceled: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		w.t.Errorf("it took %s", took)
	}
	if left := w.leftovers(); left != "" {
		w.t.Errorf("left: %s", left)
	}
}

func (w *world) nothingLeft() {
	w.t.Helper()
	if left := w.leftovers(); left != "" {
		w.t.Errorf("left: %s", left)
	}
	if left, err := filepath.Glob(filepath.Join(w.root, "*")); err != nil || len(left) != 0 {
		w.t.Errorf("left: %v, %v", left, err)
	}
}
