package databases

import (
	"context"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
)

// giveUpCreate forgets the database, whose name and place are free then. Of one that the agent finds whole the creation has
// succeeded. What stands on a server that is taken for gone, should it come back, the doctor finds.
func (d *Databases) giveUpCreate(ctx context.Context, j *creation, by operation.Order) (work.Next, error) {
	record, agent, err := d.base.DatabaseAndAgent(ctx, j.Operation())
	switch cause := j.Failure(); {
	case by.ServerGone && record.ID != "":
		return d.forget(ctx, j, record, by.Cause())
	case err != nil:
		return work.Next{}, err
	case record.Status == database.Error && cause != nil:
		return d.clear(ctx, j, agent, record, cause)
	}
	return d.giveUp(ctx, j, agent, record, by.Cause())
}

// giveUpLifecycle has the database opened or closed as it was before. Where the server refuses that for good, or is gone, nobody
// knows who gets in, and the record says so: the owner can stop or delete the database.
func (d *Databases) giveUpLifecycle(ctx context.Context, j *lifecycle, by operation.Order) (work.Next, error) {
	record, agent, err := d.base.DatabaseAndAgent(ctx, j.Operation())
	switch {
	case by.ServerGone && record.ID != "":
		return d.lifecycleFailed(ctx, j, record.Name, database.Error, by.Cause())
	case err != nil:
		return work.Next{}, err
	}
	cause := j.Failure()
	if cause == nil {
		cause = by.Cause()
		if err := j.BeginFailing(ctx, "undoing", cause, nil); err != nil {
			return work.Next{}, err
		}
	}
	next, err := d.undoLifecycle(ctx, j, agent, record.Name, cause)
	if !base.RefusedForGood(err) || base.Superseded(err) {
		return next, err
	}
	if err := j.Close(ctx, agent); err != nil {
		return work.Next{}, err
	}
	return d.lifecycleFailed(ctx, j, record.Name, database.Error, cause)
}
