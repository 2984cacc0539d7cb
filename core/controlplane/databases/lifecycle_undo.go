package databases

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// failLifecycle records that an action failed. The server may have carried out a part of it: closed the gates, ended sessions.
func (d *Databases) failLifecycle(
	ctx context.Context, j *lifecycle, agent ports.Agent, name string, cause *fault.Error,
) (work.Next, error) {
	if err := j.BeginFailing(ctx, "undoing", cause, nil); err != nil {
		return work.Next{}, err
	}
	return d.undoLifecycle(ctx, j, agent, name, cause)
}

// undoLifecycle has the server open or close the database as it was before the action, and only then makes the operation
// failed: gates and record agree again. If the server refuses that for good too, the record says so, and the operation stays
// open and is tried again: the cause may be mended on the server. A server that has no such database has nothing to open: the
// record says that too, and its owner can delete it, or stop it once it is there again.
func (d *Databases) undoLifecycle(
	ctx context.Context, j *lifecycle, agent ports.Agent, name string, cause *fault.Error,
) (work.Next, error) {
	was := database.Status(j.Input.From)
	if was != database.Error { // of such a one nobody knew who gets in
		record, err := base.UndoAccess(ctx, j.Lease, agent, was == database.Active)
		switch {
		case command.RefusedFor(err, command.ReasonIsolated): // as it was before
		case command.RefusedFor(err, command.ReasonNotFound):
			was = database.Error
		case base.RefusedForGood(err) && !base.Superseded(err):
			j.Log("lifecycle.not_undone", err)
			return work.Next{}, errors.Join(err, d.loseAccess(ctx, j, record, cause))
		case err != nil:
			return work.Next{}, err
		}
	}
	if err := j.Close(ctx, agent); err != nil {
		return work.Next{}, err
	}
	return d.lifecycleFailed(ctx, j, name, was, cause)
}

// lifecycleFailed makes the operation final, and the database what it was.
func (d *Databases) lifecycleFailed(
	ctx context.Context, j *lifecycle, name string, was database.Status, cause *fault.Error,
) (work.Next, error) {
	o := j.Operation()
	return j.Finish(ctx, work.Ending{
		On: operation.Fail, DatabaseName: name, Cause: cause, Also: func(ctx context.Context, tx ports.Tx) error {
			stored, err := tx.Databases().Lock(ctx, o.DatabaseID)
			switch {
			case err != nil || stored.Status == was:
				return err
			case was == database.Error:
				return d.move(ctx, tx, o, database.AccessLost, audit.AccessLost, audit.Details{"reason": cause.Message})
			case stored.Status == database.Error:
				return d.move(ctx, tx, o, reopened[was], audit.AccessRestored, audit.Details{"status": string(was)})
			}
			return nil
		},
	})
}

var reopened = map[database.Status]database.Event{ //nolint:exhaustive // in which an action with an effect begins
	database.Active: database.ReopenAsActive, database.Stopped: database.ReopenAsStopped,
}

// loseAccess records, once, that nobody knows who gets in.
func (d *Databases) loseAccess(ctx context.Context, j *lifecycle, record database.Record, cause *fault.Error) error {
	if record.Status == database.Error {
		return nil
	}
	o := j.Operation()
	return j.Save(ctx, "lost", nil, func(ctx context.Context, tx ports.Tx) error {
		return d.move(ctx, tx, o, database.AccessLost, audit.AccessLost, audit.Details{"reason": cause.Message})
	})
}
