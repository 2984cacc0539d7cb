package controlplane_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// asked counts what hosts ask of the store.
type asked struct {
	ports.Admissions
	slow                  time.Duration
	leases, finds, broken atomic.Int64 // so many leases fail
}

var errBroken = errors.New("the connection is lost")

func (a *asked) Find(ctx context.Context, key id.KeyID) (ports.Admission, error) {
	a.finds.Add(1)
	return a.Admissions.Find(ctx, key)
}

func (a *asked) Lease(ctx context.Context, r ports.LeaseRequest) (ports.Admission, ratelimit.Grant, error) {
	a.leases.Add(1)
	time.Sleep(a.slow)
	if a.broken.Add(-1) >= 0 {
		return ports.Admission{}, ratelimit.Grant{}, errBroken
	}
	return a.Admissions.Lease(ctx, r)
}

const manyReads = 800

// leasing is a world whose store counts, with a limit of manyReads a minute, and one of reservations that has room for leases.
func leasing(t *testing.T) (*world, *asked) {
	t.Helper()
	w := newWorld(t)
	counts := &asked{Admissions: w.store}
	w.ports.Admissions = counts
	w.ControlPlane = w.leasingHost()
	return w, counts
}

func (w *world) leasingHost() *controlplane.ControlPlane {
	c := quick()
	c.Limits[ratelimit.Read] = ratelimit.Limit{Count: manyReads, Period: time.Minute}
	c.Limits[ratelimit.Reservation] = ratelimit.Limit{Count: 100, Period: time.Hour}
	return w.process(c)
}

func (w *world) read(on *controlplane.ControlPlane) (access.Admission, error) {
	k := attempt(w.key)
	k.Class = ratelimit.Read
	return on.Access.Admit(w.ctx, k)
}

// reads is how many requests a host lets in until it refuses.
func (w *world) reads(on *controlplane.ControlPlane) (n int) {
	w.t.Helper()
	for {
		_, err := w.read(on)
		if fault.Has(err, fault.RateLimited) || n > 2*manyReads {
			return n
		}
		ok(w.t, err)
		n++
	}
}

// A burst on one host is counted to the request, and costs few writes; so do refusals.
func TestABurstWritesSeldom(t *testing.T) {
	w, counts := leasing(t)
	for i := range manyReads {
		a, err := w.read(w.ControlPlane)
		if err != nil || a.Rate.Remaining != manyReads-1-i || a.Rate.Reset != time.Duration(i+1)*time.Minute/manyReads {
			t.Fatalf("request %d: %+v, %v", i+1, a.Rate, err)
		}
	}
	for range 100 {
		a, err := w.read(w.ControlPlane)
		refused(t, err, fault.RateLimited)
		equal(t, "the caller is known", a.Caller.Known(), true)
		equal(t, "retry after", a.Rate.RetryAfter, time.Minute/manyReads)
	}
	if leases, finds := counts.leases.Load(), counts.finds.Load(); leases > 60 || leases+finds != manyReads+100 {
		t.Errorf("%d leases and %d reads", leases, finds)
	}
}

// Requests of one key that come at the same time wait for one lease.
func TestACrowdAsksOnce(t *testing.T) {
	w, counts := leasing(t)
	counts.slow = 50 * time.Millisecond
	var crowd sync.WaitGroup
	for range 50 {
		crowd.Go(func() {
			if _, err := w.read(w.ControlPlane); err != nil {
				t.Error(err)
			}
		})
	}
	crowd.Wait()
	if n := counts.leases.Load(); n > 3 {
		t.Errorf("%d leases", n)
	}
	equal(t, "what is left", w.reads(w.ControlPlane), manyReads-50)
}

// While a host holds a lease, a key that is revoked, a maintenance window and a change of the account are heeded at once.
func TestALeaseKeepsNothingFromTheStore(t *testing.T) {
	w, counts := leasing(t)
	read := func() (access.Admission, error) {
		t.Helper()
		before := counts.leases.Load()
		a, err := w.read(w.ControlPlane)
		equal(t, "leases meanwhile", counts.leases.Load(), before)
		return a, err
	}
	for range 4 {
		must(w.read(w.ControlPlane))(t)
	}
	ok(t, w.Operator.SetMaintenance(w.ctx, true))
	equal(t, "maintenance", must(read())(t).Maintenance, true)
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		w.account.Plan = account.Free
		return tx.Accounts().Save(ctx, w.account)
	}))
	equal(t, "the plan", must(read())(t).Caller.Account.Plan, account.Free)
	ok(t, w.Operator.RevokeKey(w.ctx, w.caller.Key.ID))
	refused(t, errOf(read()), fault.Unauthorized)
}

// What a host that has died had leased counts as used; what one that stops has left is there at once, on another.
func TestWhatAHostLeavesBehind(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(w *world)
		least int
		most  int
	}{
		"it dies":  {func(*world) {}, manyReads * 3 / 4, manyReads - 61},
		"it stops": {func(w *world) { ok(w.t, w.Access.ReturnLeases(w.ctx, true)) }, manyReads - 60, manyReads - 60},
		"its lease is not over": {
			func(w *world) { ok(w.t, w.Access.ReturnLeases(w.ctx, false)) }, manyReads * 3 / 4, manyReads - 61,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := leasing(t)
			for range 60 {
				must(w.read(w.ControlPlane))(t)
			}
			c.leave(w)
			if n := w.reads(w.leasingHost()); n < c.least || n > c.most {
				t.Errorf("%d more", n)
			}
		})
	}
}

// A lease that fails is the failure of one request. Those that waited for it go on, and so does the one after it.
func TestALeaseThatFails(t *testing.T) {
	w, counts := leasing(t)
	counts.slow = 20 * time.Millisecond
	counts.broken.Store(1)
	var failed atomic.Int64
	var crowd sync.WaitGroup
	for range 10 {
		crowd.Go(func() {
			if _, err := w.read(w.ControlPlane); errors.Is(err, errBroken) {
				failed.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	crowd.Wait()
	equal(t, "failed", failed.Load(), 1)
}

// Whoever waits for a lease leaves when the request ends.
func TestWaitingForALeaseEnds(t *testing.T) {
	w, counts := leasing(t)
	counts.slow = 300 * time.Millisecond
	var first sync.WaitGroup
	first.Go(func() { _, _ = w.read(w.ControlPlane) })
	for counts.leases.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Millisecond)
	defer cancel()
	k := attempt(w.key)
	k.Class = ratelimit.Read
	if _, err := w.Access.Admit(ctx, k); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	equal(t, "leases", counts.leases.Load(), 1)
	first.Wait()
}

// Three hosts that are flooded let in the limit and not one more, while leases go back all the time.
func TestAFloodOnThreeHosts(t *testing.T) {
	w, _ := leasing(t)
	var let atomic.Int64
	var flood sync.WaitGroup
	for range 3 {
		host := w.leasingHost()
		for range 4 {
			flood.Go(func() {
				for range manyReads {
					if _, err := w.read(host); err == nil {
						let.Add(1)
					} else if !fault.Has(err, fault.RateLimited) {
						t.Error(err)
					}
				}
			})
		}
		flood.Go(func() {
			for range 100 {
				if err := host.Access.ReturnLeases(w.ctx, true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	flood.Wait()
	if n := let.Load(); n > manyReads || n < manyReads*2/3 {
		t.Errorf("%d were let in, %d are allowed", n, manyReads)
	}
}

// An ended lease goes back without a request: after its end, another host finds all that drained meanwhile and all that was left.
func TestEndedLeasesGoBack(t *testing.T) {
	w, _ := leasing(t)
	for range 60 {
		must(w.read(w.ControlPlane))(t)
	}
	w.clock.Advance(ratelimit.Hold)
	ok(t, w.Access.ReturnLeases(w.ctx, false))
	equal(t, "more", w.reads(w.leasingHost()), manyReads-60+manyReads*int(ratelimit.Hold)/int(time.Minute))
}

// Restore reservations are counted one by one and over all hosts: in no hour are there more than the limit allows.
func TestReservationsAreNotLeased(t *testing.T) {
	w, counts := leasing(t)
	other := w.leasingHost()
	k := attempt(w.key)
	k.Class = ratelimit.Reservation
	for range 50 {
		must(w.Access.Admit(w.ctx, k))(t)
		must(other.Access.Admit(w.ctx, k))(t)
	}
	equal(t, "reads without asking", counts.finds.Load(), 0)
	for range 2 {
		a, err := other.Access.Admit(w.ctx, k)
		refused(t, err, fault.RateLimited)
		equal(t, "again after", a.Rate.RetryAfter, time.Hour)
	}
	w.clock.Advance(time.Hour - time.Minute)
	refused(t, errOf(w.Access.Admit(w.ctx, k)), fault.RateLimited)
	w.clock.Advance(time.Minute)
	must(w.Access.Admit(w.ctx, k))(t)
}
