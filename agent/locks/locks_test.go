package locks

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestLocksSerializeOneNameOnly(t *testing.T) {
	var l Locks
	release := check.Must(l.Take(t.Context(), "a"))(t)
	other, err := l.Take(t.Context(), "b")
	if err != nil {
		t.Fatal("another name waits: ", err)
	}
	other()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.Take(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a held lock was given: %v", err)
	}
	if l.Try("a") != nil {
		t.Error("a held lock was given to one who does not wait")
	}
	release()
	if release = l.Try("a"); release == nil {
		t.Fatal("a free lock was not given")
	}
	release()
	if len(l.slots) != 0 {
		t.Errorf("%d locks are remembered after their last use", len(l.slots))
	}
}

func TestLocksUnderLoad(t *testing.T) {
	var l Locks
	var group sync.WaitGroup
	counts := map[string]int{"a": 0, "b": 0}
	for _, name := range []string{"a", "b"} {
		n := 0
		for range 50 {
			group.Go(func() {
				release, err := l.Take(t.Context(), name)
				if err != nil {
					t.Error(err)
					return
				}
				defer release()
				n++ // the race detector watches
			})
		}
		group.Wait()
		counts[name] = n
	}
	if counts["a"] != 50 || counts["b"] != 50 || len(l.slots) != 0 {
		t.Errorf("%v, %d left", counts, len(l.slots))
	}
}
