package artifact_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/artifact/store"
)

// A backup that is resumed has the names of what its predecessor left, and is swept away by nobody.
func TestSweepLeavesAResumedBackupAlone(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT n, md5(n::text) AS v FROM generate_series(1, 20000) n`)
	for _, point := range []string{"backup.after-login", "backup.verify.database-created"} {
		w.root = t.TempDir()
		w.kill(point)
		w.files = w.open(store.Options{Reserve: 1})
		next := artifact.New(w.config(), w.files)
		if err := next.EndPredecessor(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		swept := make(chan error, 1)
		go func() {
			var err error
			for ctx.Err() == nil {
				if failed := next.Sweep(ctx); ctx.Err() == nil {
					err = errors.Join(err, failed)
				}
			}
			swept <- err
		}()
		result, err := w.run(next, w.request())
		if err != nil || result.VerifiedAt == nil {
			t.Errorf("%s: %+v, %v", point, result, err)
		}
		cancel()
		if err := <-swept; err != nil {
			t.Errorf("%s: the sweep: %v", point, err)
		}
		if left := w.leftovers(); left != "" {
			t.Errorf("%s leaves %s", point, left)
		}
	}
}
