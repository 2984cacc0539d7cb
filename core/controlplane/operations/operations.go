// Package operations shows what is done to databases, and what was done.
package operations

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Operations shows and cancels asynchronous operations (spec, section "Operations").
type Operations struct{ base *base.Base }

// New makes the use cases.
func New(p *base.Base) *Operations { return &Operations{base: p} }

// Reached is an operation of a database that a caller may see.
type Reached struct {
	access.Reached
	operation operation.Operation
}

// Operation returns the operation as it was when Reach found it.
func (r Reached) Operation() operation.Operation { return r.operation }

// Reach finds an operation in the caller's scope; a full-account key reaches those of its account's deleted databases, too.
// OPERATION_NOT_FOUND: it is missing, of another account, out of scope or of an internal kind. The other errors are those of
// Access.Reach.
func (o *Operations) Reach(
	ctx context.Context, c access.Caller, op id.OperationID, action account.Action, gates ...rollout.Gate,
) (Reached, error) {
	reached, err := access.Find(ctx, o.base.Store, c, gates, errNotFound(), func(
		ctx context.Context, tx ports.Tx, p access.Passage,
	) (Reached, error) {
		found, err := tx.Operations().Get(ctx, op)
		if err != nil {
			return Reached{}, err
		}
		if !o.base.Work.Spec(found.Kind).Public {
			return Reached{}, ports.ErrNoRow
		}
		r, err := p.ReachDeleted(ctx, tx, found.DatabaseID)
		return Reached{r, found}, err
	})
	if err == nil {
		reached.operation, err = reached.Shown(o.base, reached.operation)
	}
	if err != nil {
		return Reached{}, err
	}
	return reached, reached.Permit(action)
}

func errNotFound() error { return fault.New(fault.OperationNotFound, "no such operation") }

// List returns the operations of a database, newest first, and the position of the last one where there are more.
func (o *Operations) List(
	ctx context.Context, r access.Reached, p ports.Page,
) ([]operation.Operation, *ports.Position, error) {
	if err := r.Permit(account.See); err != nil {
		return nil, nil, err
	}
	list, next, err := base.List(ctx, o.base.Store, p,
		func(v operation.Operation) ports.Position { return ports.Position{At: v.CreatedAt, ID: string(v.ID)} },
		func(ctx context.Context, tx ports.Tx, p ports.Page) ([]operation.Operation, error) {
			return tx.Operations().List(ctx, r.Record().ID, o.base.Work.Public(), p)
		})
	for i := range list {
		if err == nil {
			list[i], err = r.Shown(o.base, list[i])
		}
	}
	return list, next, err
}

// Cancel ends a queued operation at once. For a running one it asks the worker to end it: the status becomes canceled when the
// server has confirmed. FORBIDDEN: the caller may not start such an operation. OPERATION_NOT_FOUND: the caller has lost the right
// since Reach. DATABASE_STATE_CONFLICT: it is final, or it may already have changed something.
func (o *Operations) Cancel(ctx context.Context, r Reached) (operation.Operation, error) {
	if err := r.Permit(o.base.Work.Spec(r.operation.Kind).Right); err != nil {
		return operation.Operation{}, err
	}
	var now operation.Operation
	err := r.Update(ctx, o.base, func(ctx context.Context, tx ports.Tx, record database.Record) error {
		locked, err := tx.Operations().Lock(ctx, r.operation.ID)
		if err != nil {
			return err
		}
		now, err = Cancel(ctx, o.base, tx, locked, record, r.Caller().Actor())
		return err
	})
	if fault.Has(err, fault.DatabaseNotFound) {
		err = errNotFound()
	}
	return now, err
}

// Cancel applies the request to an operation that is locked.
func Cancel(
	ctx context.Context, p *base.Base, tx ports.Tx, o operation.Operation, r database.Record, by audit.Actor,
) (operation.Operation, error) {
	now, ended, err := p.Work.Cancel(ctx, tx, o, r.Name)
	if err != nil || !ended {
		return now, err
	}
	return now, p.Audit(ctx, tx, r, by, audit.OperationCanceled, audit.Details{"operationId": string(o.ID)})
}
