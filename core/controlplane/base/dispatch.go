package base

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pgherd/pgherd/ports"
)

// dispatchPoll is how often a dispatcher looks for work when nothing wakes it.
const dispatchPoll = 500 * time.Millisecond

// Attempts is work that is claimed under leases and attempted.
type Attempts[W any] struct {
	Parallel int // attempts at a time
	Claimers int // claims at a time
	// Claim takes the next; ErrNoRow when there is none.
	Claim func(ctx context.Context) (W, error)
	// Attempt does it and stores its outcome, or leaves it to the end of the lease.
	Attempt func(ctx context.Context, w W)
	// Unreadable is called with the reason why nothing could be claimed.
	Unreadable func(ctx context.Context, err error)
}

// Dispatch attempts what can be claimed until the context ends. It returns when the running attempts have ended.
func Dispatch[W any](ctx context.Context, n ports.Notifier, a Attempts[W]) {
	var underWay sync.WaitGroup
	defer underWay.Wait()
	slots, freed := make(chan struct{}, a.Parallel), make(chan struct{}, 1)
	start := func(claimed W) {
		underWay.Go(func() {
			a.Attempt(ctx, claimed)
			<-slots
			signal(freed)
		})
	}
	WhenWoken(ctx, n, freed, func() { a.startAll(ctx, slots, start) })
}

// Next claims one piece of work and attempts it. It reports false when there was none to claim.
func (a Attempts[W]) Next(ctx context.Context) (worked bool, err error) {
	claimed, err := a.Claim(ctx)
	if errors.Is(err, ports.ErrNoRow) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	a.Attempt(ctx, claimed)
	return true, nil
}

// WhenWoken calls work at once, and then whenever there may be something to do, until the context ends.
func WhenWoken(ctx context.Context, n ports.Notifier, also <-chan struct{}, work func()) {
	wake, stop := n.Wake()
	defer stop()
	tick := time.NewTicker(dispatchPoll)
	defer tick.Stop()
	for ctx.Err() == nil {
		work()
		select {
		case <-wake:
		case <-also:
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is pending already
	}
}

// startAll starts attempts until none is due or no slot is free. The first claim is made alone, so that an idle dispatcher
// sends few queries; once there is work, claims run concurrently, because each waits for the disk.
func (a Attempts[W]) startAll(ctx context.Context, slots chan struct{}, start func(W)) {
	if !a.startNext(ctx, slots, start) {
		return
	}
	var claiming sync.WaitGroup
	defer claiming.Wait()
	for range a.Claimers {
		claiming.Go(func() {
			for a.startNext(ctx, slots, start) {
			}
		})
	}
}

// startNext starts one attempt and reports whether it did.
func (a Attempts[W]) startNext(ctx context.Context, slots chan struct{}, start func(W)) bool {
	select {
	case slots <- struct{}{}:
	default:
		return false
	}
	claimed, err := a.Claim(ctx)
	if err != nil {
		<-slots
		if !errors.Is(err, ports.ErrNoRow) && ctx.Err() == nil {
			a.Unreadable(ctx, err)
		}
		return false
	}
	start(claimed)
	return true
}
