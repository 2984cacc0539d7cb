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
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Ending implements work.Steps. What else belongs to it is added by kept, as only the server knows what the database is then.
func (t turn) Ending(on operation.Event, cause *fault.Error) work.Ending {
	return work.Ending{On: on, Cause: cause}
}

// End implements work.Steps: the agent opens the database as it was, and then closes the operation, which leaves nothing of a
// backup. If it refuses for good to open it, the record says so, and the operation stays open and is tried again, as the cause
// may be mended on the server, or ends so on an operator's order: the owner can stop the database, or delete it again. A server
// that has no such database any more has nothing to open.
func (t turn) End(ctx context.Context, e work.Ending) (work.Next, error) {
	was := t.Input.From
	if t.Input.Missing {
		was = database.Error
	}
	if was != database.Error { // of such a one nobody knew who gets in
		err := t.restoreAccess(ctx)
		switch {
		case t.Untouched(err):
			return t.kept(ctx, e, was)
		case command.RefusedFor(err, command.ReasonIsolated): // as it was before
		case command.RefusedFor(err, command.ReasonNotFound), t.Ordered && refusedForGood(err):
			was = database.Error
		case err != nil:
			return work.Next{}, err
		}
	}
	err := t.Close(ctx, t.Agent)
	switch {
	case command.RefusedFor(err, command.ReasonCompleted):
		return t.Next(ctx, stage.Completed)
	case err != nil && !t.Untouched(err):
		return work.Next{}, err
	}
	return t.kept(ctx, e, was)
}

func refusedForGood(err error) bool { return base.RefusedForGood(err) && !base.Superseded(err) }

// restoreAccess opens or closes the database as it was.
func (t turn) restoreAccess(ctx context.Context) error {
	record, err := base.UndoAccess(ctx, t.Lease, t.Agent, t.Input.From == database.Active)
	nowhere := command.RefusedFor(err, command.ReasonNotFound) || command.RefusedFor(err, command.ReasonIsolated)
	if refusedForGood(err) && !nowhere {
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
		return t.d.base.Audit(ctx, tx, stored, t.Of.Actor, audit.AccessLost, audit.Details{"operationId": string(t.Of.ID)})
	})
}

// kept makes the operation final whose database stays, as it was.
func (t turn) kept(ctx context.Context, e work.Ending, was database.Status) (work.Next, error) {
	what, details := audit.OperationCanceled, audit.Details{"operationId": string(t.Of.ID), "status": string(was)}
	if e.Cause != nil {
		what, details["code"] = audit.DeleteFailed, string(e.Cause.Code)
	}
	e.DatabaseName, e.Also = t.Record.Name, func(ctx context.Context, tx ports.Tx) error {
		locked, err := t.d.settle(ctx, tx, t.Of, was)
		if err != nil {
			return err
		}
		return t.d.base.Audit(ctx, tx, locked, t.Of.Actor, what, details)
	}
	return t.Finish(ctx, e)
}

// Lost implements work.Steps. The database is deleted, without a backup to recover it from; one that was to stay stays, and
// nobody knows who gets in. Should the server come back with the database in service, its purge is refused.
func (t turn) Lost(ctx context.Context, _ *fault.Error) (work.Next, error) {
	switch t.Stage {
	case stage.Failing:
		return t.kept(ctx, t.Ending(operation.Fail, t.Failure()), database.Error)
	case stage.Canceling:
		return t.kept(ctx, t.Ending(operation.ConfirmCancel, nil), database.Error)
	}
	t.Input.Filename, t.Input.Made = "", nil
	return t.conclude(ctx)
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
