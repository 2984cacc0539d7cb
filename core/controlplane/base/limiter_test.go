package base

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slot"
)

func few(perAccount, perServer int, wait time.Duration) *Limiter {
	limits := slot.Limits{PerAccount: perAccount, Share: perAccount, PerServer: perServer}
	return NewLimiter(limits, wait, "the account has too many", "too many from this server")
}

// queued waits until so many wait for their turn.
func (l *Limiter) queued(t *testing.T, n int) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		_, got := l.queue.Count()
		if got == n {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%d wait, want %d", got, n)
		}
	}
}

func (l *Limiter) enters(t *testing.T, account id.AccountID) (release func()) {
	t.Helper()
	release, err := l.Enter(t.Context(), account, "server")
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// The requests of an account that has slots came first; those of one that has none are served first all the same.
func TestWaitingDownloadsAreServedFairly(t *testing.T) {
	d, served, done := few(4, 4, time.Minute), make(chan string, 3), sync.WaitGroup{}
	held := []func(){d.enters(t, "dan"), d.enters(t, "ada"), d.enters(t, "dan"), d.enters(t, "eve")}
	for i, account := range []id.AccountID{"ada", "bob", "cyd"} {
		done.Go(func() {
			release, err := d.Enter(t.Context(), account, "server")
			served <- fmt.Sprint(account, err)
			if err == nil {
				release()
			}
		})
		d.queued(t, i+1)
	}
	held[0]()
	done.Wait()
	for _, leave := range held[1:] {
		leave()
	}
	if order := <-served + " " + <-served + " " + <-served; order != "bob<nil> cyd<nil> ada<nil>" {
		t.Error(order)
	}
}

func TestAWaiterWhoseCallerIsGoneLeavesTheQueue(t *testing.T) {
	d := few(2, 1, time.Minute)
	held := d.enters(t, "ada")
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := d.Enter(ctx, "bob", "server")
		ended <- err
	}()
	d.queued(t, 1)
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	d.queued(t, 0)
	held()
	d.enters(t, "bob")()
	d.enters(t, "bob")()
}

// Many at once, and some of them lose patience at the moment when their turn comes.
func TestNoSlotIsLostAmongMany(t *testing.T) {
	const perServer, perAccount = 3, 2
	d, all := few(perAccount, perServer, 2*time.Millisecond), sync.WaitGroup{}
	var in, most, busy, limited atomic.Int64
	for i := range 60 {
		all.Go(func() {
			for range 40 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Millisecond)
				release, err := d.Enter(ctx, id.AccountID(fmt.Sprint(i%9)), "server")
				switch {
				case err == nil:
					most.Store(max(most.Load(), in.Add(1)))
					time.Sleep(100 * time.Microsecond)
					in.Add(-1)
					release()
					release()
				case fault.Has(err, fault.ServerBusy):
					busy.Add(1)
				case fault.Has(err, fault.RateLimited):
					limited.Add(1)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if _, waiting := d.queue.Count(); most.Load() > perServer || waiting > 0 {
		t.Errorf("%d were in at a time, %d wait still", most.Load(), waiting)
	}
	if busy.Load() == 0 || limited.Load() == 0 {
		t.Errorf("%d busy, %d limited: the test shows little", busy.Load(), limited.Load())
	}
	for i := range perServer {
		d.enters(t, id.AccountID(fmt.Sprint(i)))
	}
}
