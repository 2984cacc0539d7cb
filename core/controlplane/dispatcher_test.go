package controlplane_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/webhooks"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/inbox"
)

// Ten failures or more disable nothing while every delivery has attempts left; the first that is exhausted does, and what
// waits for the endpoint is given up.
func TestNotDisabledBeforeADeliveryIsExhausted(t *testing.T) {
	w := newWorld(t)
	made := w.hook(receiver)
	w.inbox.On(receiver, inbox.Status(500))
	r := w.reached(w.made("shop").Record.ID)
	const deliveries = 6
	for range deliveries {
		w.fires(r)
	}
	for round := 1; round <= webhook.MaxAttempts-1; round++ {
		w.dispatch(w.ControlPlane)
		equal(t, "failures", w.endpoint(made).ConsecutiveFailures, deliveries*round)
		equal(t, "status", w.endpoint(made).Status(), webhook.Enabled)
		w.clock.Advance(6 * time.Minute)
	}
	w.dispatch(w.ControlPlane)
	e := w.endpoint(made)
	equal(t, "status", e.Status(), webhook.Disabled)
	equal(t, "failures", e.ConsecutiveFailures, deliveries*(webhook.MaxAttempts-1)+1)
	for _, a := range w.attempts(made) {
		equal(t, "delivery", a.Status, webhook.Failed)
	}
	log := w.hookLog("")
	equal(t, "disabled by", log[len(log)-1].Actor, audit.System)
}

// awaitRequests waits until a URL has got so many requests.
func (w *world) awaitRequests(url string, n int) {
	w.t.Helper()
	for until := time.Now().Add(20 * time.Second); len(w.inbox.Requests(url)) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			w.t.Fatalf("%d requests of %d came", len(w.inbox.Requests(url)), n)
		}
	}
}

// A receiver that never answers has a few requests under way, and no other one waits for it.
func TestADeadReceiverHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	const dead, alive, events = "https://dead.example.com/", "https://alive.example.com/", 40
	w.hook(dead)
	w.hook(alive)
	w.inbox.On(dead, func(ctx context.Context, _ int) webhook.Outcome {
		<-ctx.Done()
		return webhook.Outcome{Error: "no answer"}
	})
	r := w.reached(w.made("shop").Record.ID)
	for range events {
		w.fires(r)
	}
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(w.ctx)
	running.Go(func() { w.Dispatcher.Run(ctx, w.store.Dispatchers(), 16) })
	w.awaitRequests(alive, events)
	if n := len(w.inbox.Requests(dead)); n == 0 || n > 4 {
		t.Errorf("%d requests are under way at the dead receiver", n)
	}
	stop()
	running.Wait()
}

// One account's receivers all hang, and they are many. Another account's is reached.
func TestAnAccountsDeadReceiversHoldUpNoOthers(t *testing.T) {
	w := newWorld(t)
	const alive, parallel, receivers, events = "https://alive.example.com/", 16, 8, 8
	for n := range receivers {
		dead := fmt.Sprintf("https://dead%d.example.com/", n)
		w.hook(dead)
		w.inbox.On(dead, func(ctx context.Context, _ int) webhook.Outcome {
			<-ctx.Done()
			return webhook.Outcome{Error: "no answer"}
		})
	}
	shop := w.reached(w.made("shop").Record.ID)
	for range events {
		w.fires(shop)
	}
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(w.ctx)
	running.Go(func() { w.Dispatcher.Run(ctx, w.store.Dispatchers(), parallel) })
	under := func() (n int) {
		for i := range receivers {
			n += len(w.inbox.Requests(fmt.Sprintf("https://dead%d.example.com/", i)))
		}
		return n
	}
	for until := time.Now().Add(20 * time.Second); under() < parallel/2 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	_, _, w.caller = w.newAccount("bob@example.org", account.Pro)
	w.hook(alive)
	r := w.reached(w.made("other").Record.ID)
	for range events {
		w.fires(r)
	}
	w.awaitRequests(alive, events)
	if n := under(); n >= parallel {
		t.Errorf("%d requests of one account are under way, of %d", n, parallel)
	}
	stop()
	running.Wait()
}

// The process dies at each point, before and after the receiver has the event: it arrives all the same, and a repeated request
// is known by its Service-Event-Id.
func TestADispatcherThatDiesLosesNothing(t *testing.T) {
	for _, point := range webhooks.CrashPoints {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			made := w.hook(receiver)
			work := w.fires(w.reached(w.made("shop").Record.ID))
			dead := w.process(mortal(point))
			equal(t, "died", dies(func() { w.dispatch(dead) }), true)
			sent := len(w.inbox.Requests(receiver))
			equal(t, "sent before the death", sent, map[bool]int{true: 1}[point == webhooks.CrashSent])
			w.clock.Advance(webhook.Hold)
			w.dispatch(w.process(quick()))
			got := w.inbox.Requests(receiver)
			if len(got) != sent+1 {
				t.Fatalf("%d requests", len(got))
			}
			for _, r := range got {
				equal(t, "event ID", r.EventID, got[0].EventID)
				equal(t, "operation", must(operationEvent(r))(t).ID, work.ID)
				signedBy(t, r, made.Secret, true)
			}
			list := w.attempts(made)
			if len(list) != 1 || list[0].Number != 1 || list[0].Status != webhook.Delivered {
				t.Errorf("%+v", list)
			}
			w.clock.Advance(time.Hour)
			w.dispatch(w.ControlPlane)
			equal(t, "requests in the end", len(w.inbox.Requests(receiver)), sent+1)
		})
	}
}

// A dispatcher sleeps in the middle of an attempt, until another has done its work: what it brings then counts for nothing.
func TestADispatcherThatSleptRecordsNothing(t *testing.T) {
	w := newWorld(t)
	made := w.hook(receiver)
	other := w.process(quick())
	w.inbox.On(receiver, func(_ context.Context, n int) webhook.Outcome {
		if n > 1 {
			return webhook.Outcome{StatusCode: 200}
		}
		w.clock.Advance(webhook.Hold)
		equal(t, "the other claims it", must(other.Dispatcher.RunNext(w.ctx))(t), true)
		return webhook.Outcome{StatusCode: 500, Error: "too late"}
	})
	w.fires(w.reached(w.made("shop").Record.ID))
	w.dispatch(w.ControlPlane)
	got := w.inbox.Requests(receiver)
	if len(got) != 2 || got[0].EventID != got[1].EventID {
		t.Fatalf("%+v", got)
	}
	list := w.attempts(made)
	if len(list) != 1 || list[0].StatusCode != 200 || list[0].Status != webhook.Delivered {
		t.Errorf("%+v", list)
	}
	equal(t, "failures", w.endpoint(made).ConsecutiveFailures, 0)
}

// A dispatcher that is told to stop breaks its attempts off; they are made again, and count as none.
func TestStoppingADispatcher(t *testing.T) {
	w := newWorld(t)
	made := w.hook(receiver)
	w.inbox.On(receiver, func(ctx context.Context, n int) webhook.Outcome {
		if n > 1 {
			return webhook.Outcome{StatusCode: 200}
		}
		<-ctx.Done()
		return webhook.Outcome{Error: "no answer"}
	})
	w.fires(w.reached(w.made("shop").Record.ID))
	ctx, stop := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	running.Go(func() { w.Dispatcher.Run(ctx, w.store.Dispatchers(), 2) })
	w.awaitRequests(receiver, 1)
	stop()
	running.Wait()
	equal(t, "attempts recorded", len(w.attempts(made)), 0)
	w.clock.Advance(webhook.Hold)
	w.dispatch(w.ControlPlane)
	list := w.attempts(made)
	if len(list) != 1 || list[0].Status != webhook.Delivered || w.endpoint(made).ConsecutiveFailures != 0 {
		t.Errorf("%+v", list)
	}
}

// A dispatcher that dies once at every point in turn does not use up the attempts of a delivery.
func TestADeathIsNoFailedAttempt(t *testing.T) {
	w := newWorld(t)
	made := w.hook(receiver)
	w.fires(w.reached(w.made("shop").Record.ID))
	for range 2 * webhook.MaxAttempts {
		dead := w.process(mortal(webhooks.CrashSent))
		equal(t, "died", dies(func() { w.dispatch(dead) }), true)
		w.clock.Advance(webhook.Hold)
	}
	w.dispatch(w.ControlPlane)
	equal(t, "attempts", len(w.attempts(made)), 1)
	equal(t, "failures", w.endpoint(made).ConsecutiveFailures, 0)
}

// A dispatcher wakes up while another one holds the delivery: what it brings neither counts nor ends the other's lease.
func TestADispatcherThatSleptLeavesTheHolderAlone(t *testing.T) {
	w := newWorld(t)
	made := w.hook(receiver)
	holder := w.process(mortal(webhooks.CrashClaimed))
	w.inbox.On(receiver, func(_ context.Context, n int) webhook.Outcome {
		if n > 1 {
			return webhook.Outcome{StatusCode: 200}
		}
		w.clock.Advance(webhook.Hold)
		equal(t, "the holder claims it", dies(func() { w.dispatch(holder) }), true)
		return webhook.Outcome{StatusCode: 500, Error: "too late"}
	})
	w.fires(w.reached(w.made("shop").Record.ID))
	w.dispatch(w.ControlPlane)
	equal(t, "attempts recorded", len(w.attempts(made)), 0)
	equal(t, "failures", w.endpoint(made).ConsecutiveFailures, 0)
	equal(t, "requests while it is under lease", len(w.inbox.Requests(receiver)), 1)
	w.clock.Advance(webhook.Hold)
	w.dispatch(w.ControlPlane)
	list := w.attempts(made)
	if len(list) != 1 || list[0].StatusCode != 200 || list[0].Number != 1 {
		t.Errorf("%+v", list)
	}
}

// An endpoint is disabled while its attempt is under way: the outcome is recorded, and no other attempt follows.
func TestDisabledDuringAnAttempt(t *testing.T) {
	w := newWorld(t)
	made := w.hook(receiver)
	w.inbox.On(receiver, func(context.Context, int) webhook.Outcome {
		ok(t, w.Webhooks.Disable(w.ctx, w.reachedHook(made)))
		return webhook.Outcome{StatusCode: 500, Error: "the receiver answered 500"}
	})
	w.fires(w.reached(w.made("shop").Record.ID))
	w.dispatch(w.ControlPlane)
	list := w.attempts(made)
	if len(list) != 1 || list[0].Status != webhook.Failed || list[0].NextAttempt != nil {
		t.Errorf("%+v", list)
	}
	w.clock.Advance(time.Hour)
	w.dispatch(w.ControlPlane)
	equal(t, "requests", len(w.inbox.Requests(receiver)), 1)
}
