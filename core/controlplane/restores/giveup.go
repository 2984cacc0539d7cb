package restores

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/ports"
)

// giveUp has the agent drop the copy: the database is as it was. A restore that has switched by then is concluded; one that has
// told so only lacks what a periodic task and the agent do by themselves. Where the server is gone in the middle of a switch,
// nobody knows which database it is, and the record says so.
func (r *Restores) giveUp(ctx context.Context, job *work.Job[restore.Input], by operation.Order) (work.Next, error) {
	t := turn{Job: job, r: r, of: job.Operation()}
	if t.stage = restore.Of(t.of); t.stage == restore.Queued {
		t.stage = restore.Loading // the agent may have heard of it
	}
	var err error
	t.record, t.agent, err = r.base.DatabaseAndAgent(ctx, t.of)
	switch {
	case by.ServerGone && t.record.ID != "":
		return t.Finish(ctx, t.lost(by))
	case err != nil:
		return work.Next{}, err
	}
	switch t.stage { //nolint:exhaustive // the others are final
	case restore.Loading, restore.Switching:
		return t.fail(ctx, by.Cause())
	case restore.Failing:
		return t.end(ctx, t.failed(t.Failure()))
	case restore.Settling:
		return t.Finish(ctx, t.succeeded())
	}
	return t.cancel(ctx, restore.Cancel)
}

func (t turn) lost(by operation.Order) work.Ending {
	e := t.failed(by.Cause())
	if t.stage != restore.Switching && t.stage != restore.Settling {
		return e
	}
	logged := e.Also
	e.Also = func(ctx context.Context, tx ports.Tx) error {
		stored, err := tx.Databases().Lock(ctx, t.record.ID)
		if err != nil {
			return err
		}
		cell, err := stored.Status.Decide(database.AccessLost)
		if err != nil {
			return err
		}
		stored.Status = cell.Next
		if err := tx.Databases().Save(ctx, stored); err != nil {
			return err
		}
		details := audit.Details{"operationId": string(t.of.ID), "reason": by.Cause().Message}
		if err := t.r.base.Audit(ctx, tx, stored, audit.Operator, audit.AccessLost, details); err != nil {
			return err
		}
		return logged(ctx, tx)
	}
	return e
}
