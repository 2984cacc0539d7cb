package jobs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/core/id"
)

type locked struct{ error }

func (locked) ForCustomer() string { return "a table stayed locked" }

// A customer cannot read the agent's log, so what can be said is said; what else went wrong stays in the log.
func TestAnAbandonedJobSaysWhatItCan(t *testing.T) {
	for want, cause := range map[string]error{
		"a table stayed locked": fmt.Errorf("dump: %w", locked{errors.New("55P03 at 10.0.0.1")}),
		"the operators can say": errors.New("connect to 10.0.0.1: refused"),
	} {
		if got := ForCustomer(cause, "the operators can say"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// started has a job run without a ledger.
func (r *Runner) started(
	operation, step string, account id.AccountID, work func(context.Context, *Running) (Result, error),
) *Running {
	j := Job{OperationID: id.OperationID(operation), Step: step, Account: account}
	r.jobs[j.key()] = r.start(context.Background(), j, r.Slots, work)
	return r.jobs[j.key()]
}

func TestAStopWaitsForNoJobForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := func(context.Context, *Running) (Result, error) {
			<-release
			return Result{}, errors.New("released")
		}
		r := New(nil, zap.NewNop())
		r.started("1", "dump", "ada", deaf)
		r.started("2", "dump", "ada", deaf)
		synctest.Wait()
		began := time.Now()
		r.Stop()
		if took := time.Since(began); took != stopTime {
			t.Errorf("it took %s", took)
		}
		close(release)
	})
}

// However many jobs of one account hang, another account's starts at once. One of them that is canceled while it waits ends at
// once, and one that ends makes room for the next.
func TestHangingJobsLeaveSlotsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(nil, zap.NewNop())
		begun := map[id.OperationID]bool{}
		hang := func(ctx context.Context, w *Running) (Result, error) {
			begun[w.Job.OperationID] = true
			<-ctx.Done()
			return Result{}, ctx.Err()
		}
		var waits *Running
		for _, n := range []string{"1", "2", "3", "4", "5", "6"} {
			if w := r.started(n, "dump", "ada", hang); n == "3" {
				waits = w
			}
			synctest.Wait()
		}
		brief := func(context.Context, *Running) (Result, error) { return Result{Made: true}, nil }
		other, began := r.started("7", "dump", "bob", brief), time.Now()
		<-other.done
		if result, err := other.Result(); !result.Made || err != nil || time.Since(began) > 0 {
			t.Errorf("the other account's job: %+v, %v, after %s", result, err, time.Since(began))
		}
		if stage, progress, _ := waits.Standing(); len(begun) != 2 || stage != "queued" || progress != 0 {
			t.Errorf("begun are %v, and the next is %s, %d", begun, stage, progress)
		}
		for _, n := range []id.OperationID{"3", "1"} {
			if err := r.End(t.Context(), n); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if len(begun) != 3 || !begun["4"] {
			t.Errorf("begun are %v after the third and the first were canceled", begun)
		}
		r.Stop()
	})
}

// Two accounts whose jobs all run into their limit keep a third waiting for one of these jobs, however many wait.
func TestManyJobsOfOthersAreWaitedForOnce(t *testing.T) {
	const limit = 20 * time.Second
	synctest.Test(t, func(t *testing.T) {
		r := New(nil, zap.NewNop())
		r.Slots = NewSlots(2)
		long := func(ctx context.Context, _ *Running) (r Result, err error) { return r, loop.Wait(ctx, limit) }
		for n := range 100 {
			r.started(fmt.Sprint("ada's ", n), "change", "ada", long)
			r.started(fmt.Sprint("bob's ", n), "change", "bob", long)
		}
		for n := range 3 {
			time.Sleep(time.Second)
			began := time.Now()
			<-r.started(fmt.Sprint("cyd's ", n), "change", "cyd", func(context.Context, *Running) (r Result, err error) {
				return r, err
			}).done
			if took := time.Since(began); took > limit {
				t.Errorf("the third account waited %s", took)
			}
		}
		r.Stop()
	})
}

// The end of an operation ends all of its jobs, and no other.
func TestAnOperationHasSeveralJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(nil, zap.NewNop())
		r.Slots = NewSlots(8)
		hang := func(ctx context.Context, _ *Running) (Result, error) {
			<-ctx.Done()
			return Result{}, ctx.Err()
		}
		dump, load := r.started("1", "dump", "ada", hang), r.started("1", "load", "ada", hang)
		other := r.started("2", "dump", "ada", hang)
		if err := r.End(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		<-dump.done
		<-load.done
		select {
		case <-other.done:
			t.Error("the other operation's job has ended")
		default:
		}
		if len(r.jobs) != 1 {
			t.Errorf("%d jobs are left", len(r.jobs))
		}
		r.Stop()
	})
}

// The first command waits a moment for its job. Those that ask about one that hangs do not.
func TestOnlyAYoungJobIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := New(nil, zap.NewNop()).started("1", "dump", "ada", func(context.Context, *Running) (r Result, err error) {
			<-release
			return r, err
		})
		for _, want := range []time.Duration{shortJob, 0} {
			began := time.Now()
			if w.IsOver(t.Context()) || time.Since(began) != want {
				t.Errorf("waited %s, want %s", time.Since(began), want)
			}
			time.Sleep(youngJob)
		}
		close(release)
		synctest.Wait()
		if !w.IsOver(t.Context()) {
			t.Error("a job that has ended counts as running")
		}
	})
}

// A job that waits for something else has no slot meanwhile, and goes on when it has one again. One that is canceled waits for
// neither.
func TestAJobThatWaitsAsideLeavesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(nil, zap.NewNop())
		r.Slots = NewSlots(1)
		for _, c := range []struct {
			canceled   bool
			took, runs time.Duration // of the job, and of another's, which begins meanwhile
		}{{false, 5 * time.Second, time.Second}, {false, 8 * time.Second, 8 * time.Second}, {true, 2 * time.Second, 8 * time.Second}} {
			began := time.Now()
			w := r.started("1", "dump", "ada", func(ctx context.Context, w *Running) (Result, error) {
				return Result{}, w.onJob().Aside(ctx, func(ctx context.Context) error { return loop.Wait(ctx, 5*time.Second) })
			})
			synctest.Wait()
			other := r.started("2", "dump", "bob", func(ctx context.Context, _ *Running) (r Result, err error) {
				return r, loop.Wait(ctx, c.runs)
			})
			synctest.Wait()
			if running, waiting := r.Slots.Count(); running != 1 || waiting != 0 {
				t.Errorf("%d run and %d wait", running, waiting)
			}
			if c.canceled {
				time.AfterFunc(c.took, w.cancel)
			}
			<-w.done
			if _, err := w.Result(); errors.Is(err, context.Canceled) != c.canceled || time.Since(began) != c.took {
				t.Errorf("it took %s, want %s: %v", time.Since(began), c.took, err)
			}
			<-other.done
			if running, waiting := r.Slots.Count(); running != 0 || waiting != 0 {
				t.Errorf("in the end %d run and %d wait", running, waiting)
			}
		}
	})
}
