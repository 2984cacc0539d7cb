package work

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Event implements Steps: a request to cancel, as long as that is possible.
func (t *Turn[In]) Event() stage.Event {
	if t.Of.CancelRequested && t.kind.Machine.Admits(t.Stage, stage.Cancel) {
		return stage.Cancel
	}
	return stage.Advance
}

// Enter commits the stage to which an event leads, and in the same transaction whatever else belongs to it; also may be nil.
func (t *Turn[In]) Enter(ctx context.Context, on stage.Event, also func(context.Context, ports.Tx) error) error {
	return t.enter(ctx, on, nil, also)
}

// enter also commits the cause of a stage in which the operation fails. Should this process end there, a worker looks again as
// soon as the stage allows, and not only when the callers may no longer stay away.
func (t *Turn[In]) enter(
	ctx context.Context, on stage.Event, cause *fault.Error, also func(context.Context, ports.Tx) error,
) error {
	cell, err := t.kind.Machine.Decide(t.Stage, on)
	if err != nil {
		return err
	}
	s := cell.Next
	err = t.Save(ctx, string(s), func(o *operation.Operation) {
		o.Enter(string(s), cause)
		if t.result != nil {
			o.Result = t.result
		}
		if len(o.Input) > 0 {
			o.Input = operation.Encode(t.Input)
		}
		if away := t.away(s); away > 0 {
			o.NotBefore = t.engine.Clock.Now().Add(away)
		}
	}, also)
	if err == nil {
		t.Stage = s
	}
	return err
}

// Result is what the operation shows from the next stage on, before it has ended.
func (t *Turn[In]) Result(r json.RawMessage) { t.result = r }

// Intend commits the stage whose work is about to begin, unless the operation is at it.
func (t *Turn[In]) Intend(ctx context.Context, s stage.Stage) error {
	if t.Stage == s {
		return nil
	}
	return t.Enter(ctx, t.On, nil)
}

// Next commits a stage whose work is done by the next step.
func (t *Turn[In]) Next(ctx context.Context, on stage.Event) (Next, error) {
	if err := t.Enter(ctx, on, nil); err != nil {
		return Next{}, err
	}
	return t.Again(0), nil
}

// Again asks for the next step after a pause, or puts an operation down that a caller drives.
func (t *Turn[In]) Again(pause time.Duration) Next {
	if t.ByCaller() {
		pause = t.away(t.Stage)
	}
	return Again(pause)
}

func (t *Turn[In]) away(s stage.Stage) time.Duration {
	if t.kind.Away == nil {
		return 0
	}
	return t.kind.Away(t.Input, s)
}

// Running shows how far a job of the agent is, and asks for the next step after a while; waits says that the job waits there.
func (t *Turn[In]) Running(shown string, percent int, b command.Bytes, waits bool) (Next, error) {
	t.Progress(shown, percent)
	t.Moved(b)
	return t.Again(t.PollAfter(waits)), nil
}

// Fail commits what the operation fails with, where it has something to take back, and ends it.
func (t *Turn[In]) Fail(ctx context.Context, cause *fault.Error) (Next, error) {
	cell, err := t.kind.Machine.Decide(t.Stage, stage.Refused)
	if err == nil && cell.Next == stage.Failing {
		err = t.enter(ctx, stage.Refused, cause, nil)
	}
	if err != nil {
		return Next{}, err
	}
	return t.steps.End(ctx, t.steps.Ending(operation.Fail, cause))
}

// End implements Steps: the agent takes back what it has begun. ReasonCompleted: it has done it after all, and that is concluded
// instead.
func (t *Turn[In]) End(ctx context.Context, e Ending) (Next, error) {
	switch err := t.Close(ctx, t.Agent); {
	case command.RefusedFor(err, command.ReasonCompleted):
		return t.Concluded(ctx)
	case err != nil && !t.Untouched(err):
		return Next{}, err
	}
	return t.Finish(ctx, e)
}

// Concluded goes on with what an agent says that it has completed, in place of taking it back.
func (t *Turn[In]) Concluded(ctx context.Context) (Next, error) {
	return t.advance(ctx, stage.Completed)
}

// Lost implements Steps: the operation fails, and nothing else is known.
func (t *Turn[In]) Lost(ctx context.Context, cause *fault.Error) (Next, error) {
	return t.Finish(ctx, t.steps.Ending(operation.Fail, cause))
}

// Logged is an ending with a line of the activity log: what is finished, with its status, or that it was canceled.
func (t *Turn[In]) Logged(on operation.Event, cause *fault.Error, finished audit.Action, details audit.Details) Ending {
	details["operationId"] = string(t.Of.ID)
	switch on {
	case operation.Succeed:
		details["status"] = "succeeded"
	case operation.Fail:
		details["status"], details["code"] = "failed", string(cause.Code)
	default:
		finished = audit.OperationCanceled
	}
	return Ending{On: on, Cause: cause, DatabaseName: t.Record.Name, Also: func(ctx context.Context, tx ports.Tx) error {
		return t.engine.Audit(ctx, tx, t.Record, t.Of.Actor, finished, details)
	}}
}

// Send has the agent of an operation carry out a command, as the call what.
func Send[R any](ctx context.Context, l *Lease, what string, a ports.Agent, c command.Returning[R]) (r R, err error) {
	err = l.Call(ctx, what, func(ctx context.Context, f ports.Fence) (err error) {
		r, err = ports.Do(ctx, a, f, c)
		return err
	})
	return r, err
}
