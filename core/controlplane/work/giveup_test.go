package work_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// An order that meets a worker is carried out once that has put the operation down. Where it does not for long, or ends the
// operation, the order is refused, and is none.
func TestAnOrderWaitsForAWorker(t *testing.T) {
	for what, c := range map[string]struct {
		step    time.Duration // how long the worker has it
		then    operation.Status
		refused bool
		end     operation.Status
	}{
		"it puts the operation down": {3 * time.Second, operation.Running, false, operation.Failed},
		"it ends the operation":      {3 * time.Second, operation.Succeeded, true, operation.Succeeded},
		"it has it for long":         {time.Minute, operation.Running, true, operation.Running},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.Engine.StepTime = time.Hour
				o := w.queued(w.newAccount("ada"), w.newServer("one"), "shop")
				w.step = func(ctx context.Context, j *work.Job[depth]) (work.Next, error) {
					time.Sleep(c.step)
					if c.then.Final() {
						return succeed(ctx, j)
					}
					return work.Again(time.Hour), nil
				}
				done := make(chan struct{})
				go func() { defer close(done); w.runOne(w.Engine) }()
				synctest.Wait()
				written, began := 0, time.Now()
				ended, err := w.process("two").GiveUp(w.ctx, o.ID, operation.Order{By: "ada", Reason: "enough"}, 2*time.Minute,
					func(context.Context, ports.Tx) error { written++; return nil })
				if refused := fault.Has(err, fault.DatabaseStateConflict); refused != c.refused || !refused && err != nil {
					t.Errorf("it ended with %v", err)
				}
				if waited := time.Since(began); waited > 12*time.Second {
					t.Errorf("the order waited for %s", waited)
				}
				equal(t, "written", written > 0, !c.refused)
				equal(t, "status", w.stored(o).Status, c.end)
				equal(t, "as it says", ended.Status, c.end)
				<-done
			})
		})
	}
}
