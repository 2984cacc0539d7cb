package loop

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// A call that overlooks its context is let go of, and not made a second time before it has ended.
func TestACallThatHangsIsLetGoOf(t *testing.T) {
	p, hangs := NewPatience(), make(chan struct{})
	var calls atomic.Int32
	await := func(limit time.Duration) (int, error) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return Await(ctx, p, func(context.Context) (int, error) {
			calls.Add(1)
			<-hangs
			return 7, errors.New("found")
		})
	}
	for range 3 {
		if n, err := await(20 * time.Millisecond); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d, %v", n, err)
		}
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls at a time", n)
	}
	close(hangs)
	if n, err := await(check.Patience); n != 7 || err == nil || err.Error() != "found" {
		t.Errorf("when it had ended: %d, %v", n, err)
	}
}
