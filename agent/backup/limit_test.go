package backup_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/jobs"
	core "github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// traps are customers' scripts that keep a restore from ending, with what names the statement. They do nothing where they are
// loaded.
var traps = map[string]struct{ script, named string }{
	"a CHECK that sleeps": {
		backuptest.Trap("PERFORM pg_sleep(600);") + `CREATE TABLE t (n int CHECK (trap())); INSERT INTO t VALUES (1)`,
		`, TABLE DATA public.t: "COPY public.t (n) FROM stdin;`,
	},
	"a CHECK that catches the cancel": {
		backuptest.Trap("LOOP BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP;") +
			`CREATE TABLE t (n int CHECK (trap())); INSERT INTO t VALUES (1)`,
		`, TABLE DATA public.t: "COPY public.t (n) FROM stdin;`,
	},
	"a view that sleeps under another name": {
		backuptest.Trap("PERFORM set_config('application_name', 'mine', false); PERFORM pg_sleep(600);") +
			`CREATE MATERIALIZED VIEW m AS SELECT trap()`,
		`, MATERIALIZED VIEW DATA public.m: "REFRESH MATERIALIZED VIEW public.m;"`,
	},
}

// What runs at a restore is a customer's. It is ended from outside, and the statement is named.
func TestAVerificationThatNeverEndsIsEnded(t *testing.T) {
	for name, c := range traps {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Load(c.script)
			config := w.Config()
			config.Limits = core.Limits{VerifyFactor: 1, VerifyLeast: 2 * time.Second}
			began := time.Now()
			_, err := w.Run(backuptest.NewAgent(config, w.Files), w.Request())
			if !fault.Has(err, fault.BackupNotVerified) || !strings.Contains(err.Error(), "its verification took longer than ") ||
				!strings.Contains(err.Error(), c.named) {
				t.Errorf("%v", err)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			w.LeavesNothing()
			if _, _, err := w.Files.Open(t.Context(), backuptest.DatabaseID, backuptest.Filename); err != nil {
				t.Errorf("the file is gone: %v", err)
			}
		})
	}
}

// A process that did not make the dump knows from the files how long it took.
func TestTheLimitOfAVerificationOutlivesTheProcess(t *testing.T) {
	w := newWorld(t)
	w.Load(traps["a CHECK that sleeps"].script)
	req := w.Request()
	req.Verify = false
	w.Backup(req)
	w.manifest(func(m *core.Manifest) { m.WrittenAt = m.CreatedAt.Add(1500 * time.Millisecond) })
	config := w.Config()
	config.Limits = core.Limits{VerifyFactor: 2, VerifyLeast: time.Millisecond}
	_, err := w.Run(backuptest.NewAgent(config, w.Files), w.Request())
	if !fault.Has(err, fault.BackupNotVerified) || !strings.Contains(err.Error(), "took longer than 3s") {
		t.Errorf("twice 1.5 s: %v", err)
	}
}

// A dump that passes its limit leaves nothing, and says so in words for the customer.
func TestADumpThatTakesTooLongIsEnded(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (n int)`)
	defer w.lock("t")()
	config := w.Config()
	config.LockWait, config.Limits = time.Minute, core.Limits{Dump: time.Second}
	began := time.Now()
	_, err := w.Run(backuptest.NewAgent(config, w.Files), w.Request())
	var late *jobs.TooLongError
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
			w.Load(c.script)
			w.endsSoon(`SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'verify%' AND wait_event = 'PgSleep'`)
		})
	}
	t.Run("a dump that waits for a lock", func(t *testing.T) {
		w := newWorld(t)
		w.Load(`CREATE TABLE t (n int)`)
		defer w.lock("t")()
		w.endsSoon(`SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgherd-backup-%' AND wait_event_type = 'Lock'`)
		w.nothingLeft()
	})
}

// lock locks a table until unlock.
func (w *world) lock(table string) (unlock func()) {
	w.T.Helper()
	tx := check.Must(clustertest.Database{URL: w.Patient("shop")}.Open(w.T).Begin())(w.T)
	check.Must(tx.Exec(`LOCK TABLE ` + table + ` IN ACCESS EXCLUSIVE MODE`))(w.T)
	return func() { _ = tx.Rollback() } // it only holds the lock
}

// endsSoon cancels a backup once a query counts what hangs.
func (w *world) endsSoon(hanging string) {
	w.T.Helper()
	ctx, cancel := context.WithCancel(w.T.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := w.Agent.Run(ctx, w.Request(), backuptest.Unseen)
		ended <- err
	}()
	w.awaitHanging(hanging)
	began := time.Now()
	cancel()
	if err := <-ended; err == nil || fault.Has(err, fault.BackupNotVerified) {
		w.T.Errorf("canceled: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		w.T.Errorf("it took %s", took)
	}
	w.LeavesNothing()
}

func (w *world) nothingLeft() {
	w.T.Helper()
	w.LeavesNothing()
	if left := w.found(); len(left) != 0 {
		w.T.Errorf("left: %v", left)
	}
}
