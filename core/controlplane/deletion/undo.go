package deletion

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// fail commits what the deletion fails with, and takes it back. Nothing was isolated.
func (t turn) fail(ctx context.Context, cause *fault.Error) (work.Next, error) {
	if err := t.enter(ctx, deletion.Refused, cause); err != nil {
		return work.Next{}, err
	}
	return t.reopen(ctx, t.failed(cause))
}

// cancel commits that the deletion is canceled, and takes it back: whoever takes it up after a crash does not go on with it.
func (t turn) cancel(ctx context.Context) (work.Next, error) {
	if t.stage != deletion.Canceling {
		if err := t.enter(ctx, deletion.Cancel, nil); err != nil {
			return work.Next{}, err
		}
	}
	return t.reopen(ctx, work.Ending{On: operation.ConfirmCancel})
}

func (t turn) failed(cause *fault.Error) work.Ending {
	return work.Ending{On: operation.Fail, Cause: cause}
}

// reopen has the agent open the database as it was, and then close the operation, which leaves nothing of a backup. If it refuses
// for good to open it, the record says so, and the operation stays open and is tried again: the cause may be mended on the
// server. A server that has no such database any more has nothing to open.
func (t turn) reopen(ctx context.Context, e work.Ending) (work.Next, error) {
	was := t.Input.From
	if t.Input.Missing {
		was = database.Error
	}
	if was != database.Error { // of such a one nobody knew who gets in
		err := t.restoreAccess(ctx)
		switch {
		case t.Untouched(err):
			return t.kept(ctx, e, was)
		case command.RefusedFor(err, command.ReasonNotFound):
			was = database.Error
		case err != nil:
			return work.Next{}, err
		}
	}
	err := t.Close(ctx, t.agent)
	switch {
	case command.RefusedFor(err, command.ReasonCompleted):
		return t.next(ctx, deletion.Completed)
	case err != nil && !t.Untouched(err):
		return work.Next{}, err
	}
	return t.kept(ctx, e, was)
}

// restoreAccess opens or closes the database as it was.
func (t turn) restoreAccess(ctx context.Context) error {
	record, err := base.UndoAccess(ctx, t.Lease, t.agent, t.Input.From == database.Active)
	if base.RefusedForGood(err) && !base.Superseded(err) && !command.RefusedFor(err, command.ReasonNotFound) {
		t.Log("deletion.not_undone", err)
		return errors.Join(err, t.loseAccess(ctx, record))
	}
	return err
}

// loseAccess records, once, that nobody knows who gets in.
func (t turn) loseAccess(ctx context.Context, record database.Record) error {
	if record.Status == database.Error {
		return nil
	}
	return t.Save(ctx, "lost", nil, func(ctx context.Context, tx ports.Tx) error {
		stored, err := tx.Databases().Lock(ctx, record.ID)
		if err != nil {
			return err
		}
		if stored.Status, err = deletion.Reopen(stored.Status, database.Error); err != nil {
			return err
		}
		if err := tx.Databases().Save(ctx, stored); err != nil {
			return err
		}
		return t.d.base.Audit(ctx, tx, stored, t.of.Actor, audit.AccessLost, audit.Details{"operationId": string(t.of.ID)})
	})
}

// kept makes the operation final whose database stays, as it was.
func (t turn) kept(ctx context.Context, e work.Ending, was database.Status) (work.Next, error) {
	what, details := audit.OperationCanceled, audit.Details{"operationId": string(t.of.ID), "status": string(was)}
	if e.Cause != nil {
		what, details["code"] = audit.DeleteFailed, string(e.Cause.Code)
	}
	e.DatabaseName, e.Also = t.record.Name, func(ctx context.Context, tx ports.Tx) error {
		locked, err := t.d.settle(ctx, tx, t.of, was)
		if err != nil {
			return err
		}
		return t.d.base.Audit(ctx, tx, locked, t.of.Actor, what, details)
	}
	return t.Finish(ctx, e)
}

// settle gives the database of an operation the status that it had.
func (d *Deletion) settle(
	ctx context.Context, tx ports.Tx, o operation.Operation, was database.Status,
) (database.Record, error) {
	locked, err := tx.Databases().Lock(ctx, o.DatabaseID)
	if err != nil {
		return locked, err
	}
	return locked, d.save(ctx, tx, locked, Kept, func(r *database.Record) (err error) {
		r.Status, err = deletion.Reopen(r.Status, was)
		return err
	})
}

// withdrawn does the same for a deletion that nobody has begun.
func (d *Deletion) withdrawn(ctx context.Context, tx ports.Tx, o operation.Operation) error {
	input, err := operation.Decode[deletion.Input](o.Input)
	if err == nil {
		_, err = d.settle(ctx, tx, o, input.From)
	}
	return err
}
