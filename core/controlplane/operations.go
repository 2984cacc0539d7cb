package controlplane

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Operations shows and cancels asynchronous operations (spec, section "Operations").
type Operations struct{ *base }

// List returns the operations of a database, newest first, and the position of the last one where there are more.
func (o *Operations) List(
	ctx context.Context, r Reached, p ports.Page,
) (list []operation.Operation, next *ports.Position, err error) {
	if err := r.Permit(account.See); err != nil {
		return nil, nil, err
	}
	err = o.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		list, err = tx.Operations().List(ctx, r.record.ID, o.worker.Public(), onePastEnd(p))
		return err
	})
	list, next = cut(list, p, func(v operation.Operation) ports.Position {
		return ports.Position{At: v.CreatedAt, ID: string(v.ID)}
	})
	return list, next, err
}

// Cancel ends a queued operation at once. For a running one it asks the worker to end it: the status becomes canceled when the
// server has confirmed. FORBIDDEN: the caller may not start such an operation. DATABASE_STATE_CONFLICT: it is final, or it may
// already have changed something.
func (o *Operations) Cancel(ctx context.Context, r ReachedOperation) (operation.Operation, error) {
	if err := r.Permit(o.worker.Spec(r.operation.Kind).Right); err != nil {
		return operation.Operation{}, err
	}
	var now operation.Operation
	err := o.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		locked, err := tx.Operations().Lock(ctx, r.operation.ID)
		if err != nil {
			return err
		}
		now, err = o.cancel(ctx, tx, locked, r.record, r.caller.Actor())
		return err
	})
	return now, err
}

// cancel applies the request to an operation that is locked.
func (b *base) cancel(
	ctx context.Context, tx ports.Tx, o operation.Operation, r database.Record, by audit.Actor,
) (operation.Operation, error) {
	now, ended, err := b.worker.Cancel(ctx, tx, o, r.Name)
	if err != nil || !ended {
		return now, err
	}
	return now, b.audit(ctx, tx, r, by, audit.OperationCanceled, audit.Details{"operationId": string(o.ID)})
}
