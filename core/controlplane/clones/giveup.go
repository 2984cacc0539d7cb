package clones

import (
	"context"

	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// giveUp has the agent remove the clone, and forgets its record; the source is as it was. One that has switched by then is
// concluded.
func (c *Clones) giveUp(ctx context.Context, job *work.Job[clone.Input], by operation.Order) (next work.Next, err error) {
	t := turn{Job: job, c: c, of: job.Operation()}
	if t.stage = clone.Of(t.of); t.stage == clone.Queued {
		t.stage = clone.Making
	}
	err = c.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if t.source, err = tx.Databases().Get(ctx, t.of.DatabaseID); err != nil {
			return err
		}
		t.record, err = tx.Databases().Get(ctx, t.Input.DatabaseID)
		return err
	})
	if err != nil {
		return next, err
	}
	if by.ServerGone {
		return t.Finish(ctx, t.failed(by.Cause()))
	}
	if t.agent, err = c.base.AgentOf(ctx, t.source.ServerID); err != nil {
		return next, err
	}
	switch t.stage { //nolint:exhaustive // the others are not given up, or are final
	case clone.Failing:
		return t.end(ctx, t.failed(t.Failure()))
	case clone.Canceling:
		return t.cancel(ctx)
	case clone.Settling:
		return t.Finish(ctx, t.succeeded())
	}
	return t.fail(ctx, by.Cause())
}
