package sizes

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgherd/pgherd/core/command"
)

// Whose place another database has now: neither its size is told any more, nor one that is being measured at that moment.
func TestAReplacedDatabaseIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(writing("d", "a"))
		w.took["d"] = time.Second
		w.during(t, 0)
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		go w.Run(ctx)
		size := func() (bytes int64, known bool) {
			synctest.Wait()
			bytes, known = w.Size("d")
			used, err := w.Use(ctx, command.StorageUse{After: command.StorageFromStart})
			if err != nil || (len(used.Databases) == 1) != known {
				t.Errorf("%+v, %v; known: %t", used, err, known)
			}
			return bytes, known
		}
		time.Sleep(1500 * time.Millisecond)
		if _, known := size(); !known {
			t.Fatal("it was not measured")
		}
		w.Forget("d")
		if bytes, known := size(); known {
			t.Errorf("the size of before is told: %d", bytes)
		}
		measured := func() int {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.measured)
		}
		for measured() < 2 { // it is measured anew, but also that is of before
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		w.Forget("d")
		time.Sleep(time.Second)
		if bytes, known := size(); known {
			t.Errorf("what was measured of before is told: %d", bytes)
		}
		time.Sleep(time.Minute)
		if bytes, known := size(); !known || bytes < 3 {
			t.Errorf("it was not measured again: %d", bytes)
		}
	})
}
