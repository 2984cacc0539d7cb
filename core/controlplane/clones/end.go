package clones

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// fail commits what the clone fails with, and ends it. Nothing was switched.
func (t turn) fail(ctx context.Context, cause *fault.Error) (work.Next, error) {
	if err := t.enter(ctx, clone.Refused, cause, nil); err != nil {
		return work.Next{}, err
	}
	return t.end(ctx, t.failed(cause))
}

func (t turn) failed(cause *fault.Error) work.Ending {
	e := t.ending(operation.Fail, audit.CloneFinished, audit.Details{"status": "failed", "code": string(cause.Code)}, t.remove)
	e.Cause = cause
	return e
}

// cancel commits that the clone is canceled, and ends it: whoever takes it up after a crash does not go on with it.
func (t turn) cancel(ctx context.Context) (work.Next, error) {
	if t.stage != clone.Canceling {
		if err := t.enter(ctx, clone.Cancel, nil, nil); err != nil {
			return work.Next{}, err
		}
	}
	return t.end(ctx, t.ending(operation.ConfirmCancel, audit.OperationCanceled, audit.Details{}, t.remove))
}

// end has the agent remove the clone, its copy and a file that was made for it, and makes the operation final. ReasonCompleted:
// it has switched after all, and that is concluded instead.
func (t turn) end(ctx context.Context, e work.Ending) (work.Next, error) {
	err := t.Close(ctx, t.agent)
	switch {
	case command.RefusedFor(err, command.ReasonCompleted):
		return t.switchOver(ctx)
	case err != nil && !t.Untouched(err):
		return work.Next{}, err
	}
	return t.Finish(ctx, e)
}

// ending makes the operation final, with a line of the source's activity log, and settles the clone's record.
func (t turn) ending(
	on operation.Event, what audit.Action, details audit.Details, record func(context.Context, ports.Tx) error,
) work.Ending {
	details["operationId"], details["databaseId"], details["name"] = string(t.of.ID), string(t.record.ID), t.record.Name
	return work.Ending{On: on, DatabaseName: t.source.Name, Also: func(ctx context.Context, tx ports.Tx) error {
		if err := record(ctx, tx); err != nil {
			return err
		}
		return t.c.base.Audit(ctx, tx, t.source, t.of.Actor, what, details)
	}}
}

// remove forgets a clone of which nothing exists on its server, which frees its name and its place in the quota.
func (t turn) remove(ctx context.Context, tx ports.Tx) error {
	return tx.Databases().Remove(ctx, t.record.ID)
}

// withdraw does the same for one that nobody has begun to make.
func (c *Clones) withdraw(ctx context.Context, tx ports.Tx, o operation.Operation) error {
	input, err := operation.Decode[clone.Input](o.Input)
	if err != nil {
		return err
	}
	return tx.Databases().Remove(ctx, input.DatabaseID)
}
