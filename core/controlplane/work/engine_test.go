package work_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// A step is put down and claimed again when it asked for that; meanwhile nobody waits for it.
func TestSteps(t *testing.T) {
	w := newWorld(t)
	o := w.queued(w.newAccount("ada"), w.newServer("one"), "shop")
	steps := 0
	w.step = func(ctx context.Context, j *work.Job[depth]) (work.Next, error) {
		steps++
		equal(t, "input", j.Input.Metres, 3)
		j.Progress("digging", 10*steps)
		switch steps {
		case 1:
			return work.Again(0), nil // under the same lease
		case 2:
			return work.Again(time.Second), nil
		}
		return succeed(ctx, j)
	}
	equal(t, "worked", w.runOne(w.Engine), true)
	now := w.stored(o)
	equal(t, "steps of one lease", steps, 2)
	equal(t, "stage", now.Stage, "digging")
	equal(t, "progress", now.Progress, 20)
	equal(t, "attempts", now.Attempts, 0)
	equal(t, "too early", w.runOne(w.Engine), false)
	w.clock.Advance(time.Second)
	equal(t, "worked", w.runOne(w.Engine), true)
	equal(t, "status", w.stored(o).Status, operation.Succeeded)
	equal(t, "events", len(w.store.Events()), 1)
}

// What the service has begun because a time is over waits while that is held, and is not counted as an attempt. What somebody
// has asked for, or wants canceled, does not wait.
func TestWhatIsHeld(t *testing.T) {
	for what, c := range map[string]struct {
		held   error
		change func(o *operation.Operation)
		steps  int
	}{
		"nothing holds":    {nil, func(*operation.Operation) {}, 1},
		"held":             {brake.Held{{Reason: brake.Behind}}, func(*operation.Operation) {}, 0},
		"no answer":        {errors.New("reset"), func(*operation.Operation) {}, 0},
		"asked for":        {brake.Held{{Reason: brake.Behind}}, func(o *operation.Operation) { o.Actor = audit.Operator }, 1},
		"to be taken back": {brake.Held{{Reason: brake.Behind}}, func(o *operation.Operation) { o.CancelRequested = true }, 1},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			o := w.queued(w.newAccount("ada"), w.newServer("one"), "shop", c.change)
			steps := 0
			w.held = c.held
			w.step = func(ctx context.Context, j *work.Job[depth]) (work.Next, error) {
				steps++
				return succeed(ctx, j)
			}
			equal(t, "worked", w.runOne(w.Engine), true)
			equal(t, "steps", steps, c.steps)
			if c.steps == 0 {
				var held brake.Held
				equal(t, "counted as an attempt", w.stored(o).Attempts > 0, !errors.As(c.held, &held))
				w.held = nil
				w.clock.Advance(time.Minute)
				equal(t, "worked", w.runOne(w.Engine), true)
				equal(t, "status", w.stored(o).Status, operation.Succeeded)
			}
		})
	}
}

// What deletes because a time is over waits for as long as its account is suspended. What was asked for goes on.
func TestWhatASuspensionHolds(t *testing.T) {
	for by, steps := range map[audit.Actor]int{audit.System: 0, audit.Operator: 1, audit.ByUser("u"): 1} {
		w := newWorld(t)
		of := w.newAccount("ada")
		o := w.queued(of, w.newServer("one"), "shop", func(o *operation.Operation) { o.Actor = by })
		suspend := func(s account.Suspension) {
			w.update(func(ctx context.Context, tx ports.Tx) error {
				a, err := tx.Accounts().LockForQuota(ctx, of)
				a.Suspension = s
				return errors.Join(err, tx.Accounts().Save(ctx, a))
			})
		}
		suspend(account.Suspension{}.Suspend("unpaid", w.clock.Now()))
		done := 0
		w.step = func(ctx context.Context, j *work.Job[depth]) (work.Next, error) {
			done++
			return succeed(ctx, j)
		}
		equal(t, "worked", w.runOne(w.Engine), true)
		equal(t, fmt.Sprint("steps by ", by), done, steps)
		if steps == 0 {
			suspend(account.Suspension{})
			w.clock.Advance(time.Minute)
			equal(t, "worked", w.runOne(w.Engine), true)
			equal(t, "status", w.stored(o).Status, operation.Succeeded)
		}
	}
}

// A step may say itself when it is to be done again although its outcome is not known.
func TestAStepThatFailsAndSaysWhen(t *testing.T) {
	w := newWorld(t)
	o := w.queued(w.newAccount("ada"), w.newServer("one"), "shop")
	w.step = func(context.Context, *work.Job[depth]) (work.Next, error) {
		return work.Again(time.Hour), errors.New("nobody knows")
	}
	for attempts := 1; attempts < 3; attempts++ {
		equal(t, "worked", w.runOne(w.Engine), true)
		equal(t, "attempts", w.stored(o).Attempts, attempts)
		w.clock.Advance(time.Hour - time.Second)
		equal(t, "too early", w.runOne(w.Engine), false)
		w.clock.Advance(time.Second)
	}
}

// A step whose outcome is not known is done again after a pause that grows, and without an end.
func TestAStepThatFails(t *testing.T) {
	w := newWorld(t)
	o := w.queued(w.newAccount("ada"), w.newServer("one"), "shop")
	w.step = func(context.Context, *work.Job[depth]) (work.Next, error) {
		return work.Next{}, errors.New("nobody knows")
	}
	for attempts := 1; attempts < 10; attempts++ {
		equal(t, "worked", w.runOne(w.Engine), true)
		now := w.stored(o)
		equal(t, "attempts", now.Attempts, attempts)
		equal(t, "pause", now.NotBefore.Sub(w.clock.Now()), operation.Backoff(attempts))
		w.clock.Advance(operation.Backoff(attempts))
	}
	w.step = succeed
	w.runOne(w.Engine)
	equal(t, "status", w.stored(o).Status, operation.Succeeded)
}

// A step that fails has entered no stage, also where it has shown that it was about to: what belongs to the stage is not stored.
func TestAStageThatIsShownAndNotEntered(t *testing.T) {
	w := newWorld(t)
	o := w.queued(w.newAccount("ada"), w.newServer("one"), "shop")
	w.step = func(_ context.Context, j *work.Job[depth]) (work.Next, error) {
		j.Progress("dug", 95)
		return work.Next{}, errors.New("reset")
	}
	equal(t, "worked", w.runOne(w.Engine), true)
	equal(t, "stage", w.stored(o).Stage, o.Stage)
}

// committed counts the transactions that are rolled back.
type committed struct {
	ports.Store
	rolledBack int
}

func (c *committed) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	err := c.Store.Update(ctx, fn)
	if err != nil {
		c.rolledBack++
	}
	return err
}

// A claim that finds nothing is committed: it may have noted that lanes are exhausted.
func TestAClaimThatFindsNothingIsCommitted(t *testing.T) {
	w := newWorld(t)
	store := &committed{Store: w.store}
	w.Config.Store = store
	if worked, err := w.RunNext(w.ctx); worked || err != nil {
		t.Errorf("worked: %t, %v", worked, err)
	}
	if _, err := w.Advance(w.ctx, id.FromBytes[id.OperationID](w.ids.UUID()), time.Minute); !errors.Is(err, ports.ErrNoRow) {
		t.Errorf("nothing to advance: %v", err)
	}
	if store.rolledBack > 0 {
		t.Errorf("%d claims were rolled back", store.rolledBack)
	}
}

// What was committed stays, also where the process has not heard of it: the operation goes on from there.
func TestACommitWhoseReplyIsLost(t *testing.T) {
	w := newWorld(t)
	o := w.queued(w.newAccount("ada"), w.newServer("one"), "shop")
	dug := 0
	w.step = func(ctx context.Context, j *work.Job[depth]) (work.Next, error) {
		if j.Operation().Stage == "dug" {
			return succeed(ctx, j)
		}
		dug++
		w.loses = true
		return work.Next{}, j.Save(ctx, "dug", func(o *operation.Operation) { o.Enter("dug", nil) }, nil)
	}
	equal(t, "worked", w.runOne(w.Engine), true)
	equal(t, "stage", w.stored(o).Stage, "dug")
	equal(t, "leased", w.stored(o).Until != nil, false)
	w.clock.Advance(time.Minute)
	equal(t, "worked", w.runOne(w.Engine), true)
	equal(t, "status", w.stored(o).Status, operation.Succeeded)
	equal(t, "dug", dug, 1)
}

// A step that hangs is given up in time, and its server then has one operation at a time until it answers.
func TestAStepThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ada, one, two := w.newAccount("ada"), w.newServer("one"), w.newServer("two")
		hung := []operation.Operation{w.queued(ada, one, "a"), w.queued(ada, one, "b"), w.queued(ada, one, "c")}
		other := w.queued(ada, two, "d")
		w.step = func(ctx context.Context, j *work.Job[depth]) (work.Next, error) {
			if j.Operation().ServerID == two {
				return succeed(ctx, j)
			}
			<-ctx.Done()
			return work.Next{}, ctx.Err()
		}
		ctx, stop := context.WithCancel(w.ctx)
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx, w.store, work.Workers{All: 4, PerAccount: 4, PerServer: 2}) }()
		began := time.Now()
		for !w.stored(other).Status.Final() && time.Since(began) < 5*time.Second {
			time.Sleep(time.Millisecond)
		}
		if waited := time.Since(began); waited > 150*time.Millisecond {
			t.Errorf("the other server waited for %s", waited)
		}
		for time.Since(began) < time.Second { // several step times
			w.clock.Advance(time.Second)
			time.Sleep(10 * time.Millisecond)
			leased := 0
			for _, o := range hung {
				if w.stored(o).Until != nil {
					leased++
				}
			}
			if leased > 2 || leased > 1 && time.Since(began) > 700*time.Millisecond {
				t.Fatalf("%d leases on the server that hangs", leased)
			}
		}
		stop()
		<-done
		for _, o := range hung {
			if now := w.stored(o); now.Until != nil {
				t.Error("a lease was not returned")
			}
		}
	})
}

// Steps that follow each other without a pause, and look at no context, end with the time of a step too.
func TestStepsWithoutAPauseEnd(t *testing.T) {
	w := newWorld(t)
	o := w.queued(w.newAccount("ada"), w.newServer("one"), "shop")
	w.step = func(context.Context, *work.Job[depth]) (work.Next, error) { return work.Again(0), nil }
	ended := make(chan struct{})
	go func() { defer close(ended); w.runOne(w.Engine) }()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the worker is still busy")
	}
	equal(t, "put down", w.stored(o).Until == nil, true)
}

// One account's operations never take all workers.
func TestOneAccountLeavesWorkers(t *testing.T) {
	w := newWorld(t)
	one := w.newServer("one")
	flood, other := w.newAccount("flood"), w.newAccount("other")
	release := make(chan struct{})
	started := make(chan id.AccountID, 10)
	w.step = func(ctx context.Context, j *work.Job[depth]) (work.Next, error) {
		started <- j.Operation().AccountID
		select {
		case <-release:
		case <-ctx.Done():
		}
		return succeed(ctx, j)
	}
	for i := range 5 {
		w.queued(flood, one, string(rune('a'+i)))
	}
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx, w.store, work.Workers{All: 4, PerServer: 4}) }()
	equal(t, "first", <-started, flood)
	equal(t, "second", <-started, flood)
	w.queued(other, one, "theirs")
	equal(t, "third", <-started, other)
	close(release)
	stop()
	<-done
}

// What a kind does not know, or cannot read, stays for a process that can.
func TestAnUnknownKindStays(t *testing.T) {
	w := newWorld(t)
	o := w.queued(w.newAccount("ada"), w.newServer("one"), "shop")
	old := work.New(work.Config{
		Store: w.store, Clock: w.clock, Entropy: w.ids, Journal: ports.NoJournal{}, Instance: "old",
	})
	equal(t, "an old process", w.runOne(old), false)
	running := o.Claimed("one", w.clock.Now(), time.Hour)
	if _, _, err := old.Cancel(w.ctx, nil, running, "shop"); !fault.Has(err, fault.DatabaseStateConflict) {
		t.Errorf("an old process cancels what it does not know: %v", err)
	}
	w.step = succeed
	equal(t, "a new one", w.runOne(w.Engine), true)
}

// After a long sleep neither the agent nor the store hears of the old lease.
func TestALostLease(t *testing.T) {
	w := newWorld(t)
	o := w.queued(w.newAccount("ada"), w.newServer("one"), "shop")
	calls := 0
	w.step = func(ctx context.Context, j *work.Job[depth]) (work.Next, error) {
		if j.Operation().Epoch > 1 {
			return succeed(ctx, j)
		}
		w.clock.Advance(time.Hour)
		w.runOne(w.process("two"))
		err := j.Call(ctx, "dig", func(context.Context, ports.Fence) error { calls++; return nil })
		if !errors.Is(err, ports.ErrLeaseLost) {
			t.Errorf("the call: %v", err)
		}
		_, err = succeed(ctx, j)
		if !errors.Is(err, ports.ErrLeaseLost) {
			t.Errorf("the commit: %v", err)
		}
		return work.Next{}, err
	}
	w.runOne(w.Engine)
	equal(t, "calls", calls, 0)
	equal(t, "status", w.stored(o).Status, operation.Succeeded)
	equal(t, "epoch", w.stored(o).Epoch, 2)
	equal(t, "events", len(w.store.Events()), 1)
}

// A caller drives an operation step by step. When it stays away, a worker finishes the work.
func TestACallerDrives(t *testing.T) {
	w := newWorld(t)
	o := w.queued(w.newAccount("ada"), w.newServer("one"), "shop")
	var drivers []string
	w.step = func(ctx context.Context, j *work.Job[depth]) (work.Next, error) {
		if !j.ByCaller() {
			drivers = append(drivers, "worker")
			return succeed(ctx, j)
		}
		drivers = append(drivers, "caller")
		return work.Again(10 * time.Second), nil
	}
	for range 2 {
		if now, err := w.Advance(w.ctx, o.ID, time.Minute); err != nil || now.Status != operation.Running || now.Until != nil {
			t.Fatalf("%+v, %v", now, err)
		}
		w.clock.Advance(9 * time.Second)
		equal(t, "a worker", w.runOne(w.Engine), false)
	}
	w.clock.Advance(time.Second)
	equal(t, "a worker", w.runOne(w.Engine), true)
	if _, err := w.Advance(w.ctx, o.ID, time.Minute); !errors.Is(err, ports.ErrNoRow) {
		t.Errorf("a final operation: %v", err)
	}
	if want := []string{"caller", "caller", "worker"}; !slices.Equal(drivers, want) {
		t.Errorf("driven by %v, want %v", drivers, want)
	}
}

func TestPoints(t *testing.T) {
	w := newWorld(t)
	want := []string{
		"digging.reserved", "digging.before-dig", "digging.after-dig",
		"digging.before-succeeded", "digging.after-succeeded", "digging.before-failed", "digging.after-failed",
	}
	if got := w.Points(); !slices.Equal(got, want) {
		t.Error(got)
	}
}
