package databases

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// SetLifecycle starts, stops or restarts a database and returns its status. It is no error if the database is already in that
// status.
//
// VALIDATION_ERROR on "action". FORBIDDEN: a developer or viewer. DATABASE_STATE_CONFLICT: the status or an open operation
// forbids it. AGENT_ERROR: the server cannot be reached and nothing was changed; or it has not confirmed, and the action
// continues in the background.
func (d *Databases) SetLifecycle(ctx context.Context, r access.Reached, action database.Event) (database.Status, error) {
	if _, err := database.ParseLifecycle(string(action)); err != nil {
		return "", err
	}
	release, err := r.PermitCall(ctx, d.base, account.Configure)
	if err != nil {
		return "", err
	}
	defer release()
	status, o, err := d.reserveLifecycle(ctx, r, action)
	if err != nil || o == nil {
		return status, err
	}
	if err := d.base.Work.RunNow(ctx, *o, d.base.CreateWait); err != nil {
		return "", lifecycleError(err)
	}
	return status, nil
}

// reserveLifecycle commits the intent. own is nil if nothing has to be done.
func (d *Databases) reserveLifecycle(
	ctx context.Context, r access.Reached, action database.Event,
) (status database.Status, own *operation.Operation, err error) {
	err = r.Update(ctx, d.base, func(ctx context.Context, tx ports.Tx, record database.Record) (err error) {
		status, own, err = d.intend(ctx, tx, record, operation.LifecycleInput{Action: string(action)},
			func(input json.RawMessage) operation.Operation {
				return d.base.Work.Own(record, KindLifecycle, input, r.Caller().Origin())
			})
		return err
	})
	return status, own, err
}

// intend decides about a lifecycle action of a locked database, and stores its operation, which is nil if nothing has to be done.
func (d *Databases) intend(
	ctx context.Context, tx ports.Tx, record database.Record, input operation.LifecycleInput,
	operationOf func(input json.RawMessage) operation.Operation,
) (status database.Status, o *operation.Operation, err error) {
	cell, err := record.Status.Decide(database.Event(input.Action))
	if err != nil {
		return "", nil, err
	}
	if len(cell.Effects) == 0 {
		return cell.Next, nil, d.noneUnderWay(ctx, tx, record.ID)
	}
	if err := base.NoLoginChange(ctx, tx, record.ID); err != nil {
		return "", nil, err
	}
	record.AccessGeneration++
	if err := tx.Databases().Save(ctx, record); err != nil {
		return "", nil, err
	}
	input.From, input.Generation = string(record.Status), record.AccessGeneration
	stored := operationOf(operation.Encode(input))
	return cell.Next, &stored, tx.Operations().Add(ctx, stored)
}

// noneUnderWay returns DATABASE_STATE_CONFLICT while a lifecycle action is open: the present status is then not the one that
// the database will have.
func (d *Databases) noneUnderWay(ctx context.Context, tx ports.Tx, db id.DatabaseID) error {
	open, err := tx.Operations().Open(ctx, db)
	switch {
	case errors.Is(err, ports.ErrNoRow):
		return nil
	case err == nil && open.Kind == KindLifecycle:
		return fault.New(fault.DatabaseStateConflict, "another lifecycle action of the database is under way")
	}
	return err
}

func lifecycleError(err error) error {
	if fault.CodeOf(err) != fault.InternalError {
		return err
	}
	return fault.Wrap(err, fault.AgentError,
		"the database server has not confirmed the action; it goes on in the background: read the database's status")
}

// KindLifecycle is the kind of the operations that open and close databases.
const KindLifecycle operation.Kind = "lifecycle"

type lifecycle = work.Job[operation.LifecycleInput]

// stepLifecycle opens or closes a database as its operation says.
func (d *Databases) stepLifecycle(ctx context.Context, j *lifecycle) (work.Next, error) {
	record, agent, err := d.base.DatabaseAndAgent(ctx, j.Operation())
	if err != nil {
		return work.Next{}, err
	}
	action := database.Event(j.Input.Action)
	if cause := j.Failure(); cause != nil {
		return d.undoLifecycle(ctx, j, agent, record.Name, cause)
	}
	err = base.SendAccess(ctx, j.Lease, agent, command.SetAccess{
		DatabaseID: record.ID, Generation: j.Input.Generation, Open: action != database.Stop, Disconnect: action != database.Start,
	}, func(generation int64) json.RawMessage {
		j.Input.Generation = generation
		return operation.Encode(j.Input)
	})
	switch {
	case err == nil:
		return d.lifecycleDone(ctx, j, record, action)
	case j.Untouched(err) && errors.Is(err, ports.ErrAgentUnreachable):
		return j.Finish(ctx, work.Ending{
			On: operation.Fail, DatabaseName: record.Name,
			Cause: fault.Wrap(err, fault.AgentError, "the database server cannot be reached; nothing was changed"),
		})
	case command.RefusedFor(err, command.ReasonIsolated):
		return d.failLifecycle(ctx, j, agent, record.Name, base.ErrOutOfService(err))
	case !base.Superseded(err) && base.RefusedForGood(err):
		return d.failLifecycle(ctx, j, agent, record.Name, fault.Wrap(err, fault.AgentError,
			"the database server could not %s the database", action))
	default:
		return work.Next{}, err
	}
}

func lifecycleAudit(action database.Event) audit.Action {
	switch action { //nolint:exhaustive // ParseLifecycle accepts no other
	case database.Start:
		return audit.DatabaseStarted
	case database.Stop:
		return audit.DatabaseStopped
	}
	return audit.DatabaseRestarted
}

func (d *Databases) lifecycleDone(
	ctx context.Context, j *lifecycle, record database.Record, action database.Event,
) (work.Next, error) {
	o := j.Operation()
	return j.Finish(ctx, work.Ending{
		On: operation.Succeed, DatabaseName: record.Name, Also: func(ctx context.Context, tx ports.Tx) error {
			return d.move(ctx, tx, o, action, lifecycleAudit(action), j.Input.Details())
		},
	})
}
