package backup_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/store"
)

// A backup that is resumed has the names of what its predecessor left, and is swept away by nobody.
func TestSweepLeavesAResumedBackupAlone(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT n, md5(n::text) AS v FROM generate_series(1, 20000) n`)
	for _, point := range []string{"backup.after-login", "backup.verify.database-created"} {
		w.Root = t.TempDir()
		w.kill(point)
		w.Files = w.Store(store.Options{Reserve: 1})
		next := backuptest.NewAgent(w.Config(), w.Files)
		check.NoError(t, next.Server.EndPredecessor(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		swept := make(chan error, 1)
		go func() {
			var err error
			for ctx.Err() == nil {
				if failed := next.Copies.Sweep(ctx); ctx.Err() == nil {
					err = errors.Join(err, failed)
				}
			}
			swept <- err
		}()
		result, err := w.Run(next, w.Request())
		if err != nil || result.VerifiedAt == nil {
			t.Errorf("%s: %+v, %v", point, result, err)
		}
		cancel()
		if err := <-swept; err != nil {
			t.Errorf("%s: the sweep: %v", point, err)
		}
		if left := w.Leftovers(); left != "" {
			t.Errorf("%s leaves %s", point, left)
		}
	}
}
