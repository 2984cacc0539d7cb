package work

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Staged is a kind of operations whose work has stages. A stage is committed before its work begins: after a crash the operation
// continues where it stood. Step, GiveUp and Cancelable of the kind follow from the machine.
type Staged[In any] struct {
	Kind[In]
	Machine stage.Machine
	// Begun is the stage of an operation that is still queued when it is claimed: the agent may have heard of it.
	Begun stage.Stage
	// Begin makes what does a step.
	Begin func(context.Context, *Turn[In]) (Steps, error)
	// Away is how long the callers of an operation may stay away at a stage; nil or 0: no caller drives it.
	Away func(In, stage.Stage) time.Duration
}

// Steps does one step of an operation. A type that embeds a Turn lacks only Do and Ending; it may replace the others.
type Steps interface {
	// Event is what the step begins with.
	Event() stage.Event
	// Do does the work of a stage.
	Do(ctx context.Context, s stage.Stage) (Next, error)
	// Ending is how the operation becomes final; cause is that of operation.Fail.
	Ending(on operation.Event, cause *fault.Error) Ending
	// End takes back what was begun, and makes the operation final.
	End(ctx context.Context, e Ending) (Next, error)
	// Lost makes an operation final whose server is gone, without a word of it.
	Lost(ctx context.Context, cause *fault.Error) (Next, error)
}

// Returning are Steps by which an operation may be taken back on an order that has come too far to fail or to be canceled.
type Returning interface {
	// Return takes an operation back; is says that it can be at this stage.
	Return(ctx context.Context, cause *fault.Error) (next Next, is bool, err error)
}

// Turn is one step of an operation with stages, with what it is about.
type Turn[In any] struct {
	*Job[In]

	Record  database.Record
	Agent   ports.Agent
	Of      operation.Operation // as the step found it
	Stage   stage.Stage
	On      stage.Event // what led to the work that is done
	Ordered bool        // an operator wants it ended

	kind   Staged[In]
	steps  Steps
	result json.RawMessage // what the operation shows from the next stage on
}

// RegisterStaged adds a kind with stages; see Register.
func RegisterStaged[In any](e *Engine, k Staged[In]) {
	kind := k.Kind
	kind.Cancelable, kind.Step, kind.GiveUp = k.Machine.Cancelable, k.step, k.giveUp
	register(e, kind, k.Begun)
}

// begin makes a step of a job. A server that is gone needs no agent.
func (k Staged[In]) begin(ctx context.Context, j *Job[In], gone bool) (t *Turn[In], err error) {
	t = &Turn[In]{Job: j, Of: j.Operation(), Ordered: gone, kind: k}
	if t.Stage = k.Machine.Of(t.Of); t.Stage == stage.Queued {
		t.Stage = k.Begun
	}
	t.Record, t.Agent, err = j.engine.Site(ctx, t.Of)
	if err == nil || gone && t.Record.ID != "" {
		t.steps, err = k.Begin(ctx, t)
	}
	return t, err
}

// step does what comes next. An operation that a caller drives is put down for as long as its callers may stay away, also where
// the step has failed.
func (k Staged[In]) step(ctx context.Context, j *Job[In]) (next Next, err error) {
	t, err := k.begin(ctx, j, false)
	if err == nil {
		next, err = t.advance(ctx, t.steps.Event())
	}
	if err != nil && t.ByCaller() {
		next = Again(t.away(t.Stage))
	}
	return next, err
}

// giveUp fails the operation, cancels it where it cannot fail any more, takes it back where it can be, or concludes it where only
// formalities are left.
func (k Staged[In]) giveUp(ctx context.Context, j *Job[In], by operation.Order) (Next, error) {
	t, err := k.begin(ctx, j, by.ServerGone)
	if err != nil {
		return Next{}, err
	}
	t.Ordered = true
	switch {
	case by.ServerGone:
		return t.steps.Lost(ctx, by.Cause())
	case t.Stage == stage.Failing:
		return t.advance(ctx, stage.Advance)
	case k.Machine.Admits(t.Stage, stage.Refused):
		return t.Fail(ctx, by.Cause())
	case k.Machine.Admits(t.Stage, stage.Cancel):
		return t.advance(ctx, stage.Cancel)
	}
	if r, may := t.steps.(Returning); may {
		if next, is, err := r.Return(ctx, by.Cause()); is || err != nil {
			return next, err
		}
	}
	return t.Finish(ctx, t.steps.Ending(operation.Succeed, nil))
}

// advance does the work to which an event leads.
func (t *Turn[In]) advance(ctx context.Context, on stage.Event) (Next, error) {
	cell, err := t.kind.Machine.Decide(t.Stage, on)
	if err != nil {
		return Next{}, err
	}
	switch t.On = on; cell.Next {
	case stage.Failing:
		return t.steps.End(ctx, t.steps.Ending(operation.Fail, t.Failure()))
	case stage.Canceling: // committed, so that whoever takes it up after a crash does not go on with it
		if err := t.Intend(ctx, cell.Next); err != nil {
			return Next{}, err
		}
		fallthrough
	case stage.Canceled:
		return t.steps.End(ctx, t.steps.Ending(operation.ConfirmCancel, nil))
	}
	return t.steps.Do(ctx, cell.Next)
}
