package controlplane

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Reached is a database that a caller may see. Only Access.Reach creates one, so it proves that the scope was checked. The
// record is a snapshot from that moment; use cases that write lock the database and read it again.
type Reached struct {
	caller   Caller
	record   database.Record
	standing account.Standing
}

// Record returns the database as it was when Reach found it.
func (r Reached) Record() database.Record { return r.record }

// Standing returns the caller's standing on the database.
func (r Reached) Standing() account.Standing { return r.standing }

// Permit returns FORBIDDEN if the caller's standing does not allow the action.
func (r Reached) Permit(a account.Action) error {
	if r.record.ID == "" {
		return errDatabaseNotFound()
	}
	return account.Permit(r.standing, a)
}

// Reach finds a database in the caller's scope. DATABASE_NOT_FOUND: it is missing, of another account, out of scope or, for a
// selected-database key, being deleted. FORBIDDEN: the caller sees it, but may not do the action.
func (a *Access) Reach(ctx context.Context, c Caller, db id.DatabaseID, action account.Action) (Reached, error) {
	if !c.Known() {
		return Reached{}, errDatabaseNotFound()
	}
	reached := Reached{caller: c}
	err := a.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		reached.record, reached.standing, err = tx.Databases().Reach(ctx, c.viewer(), db)
		return err
	})
	if err != nil {
		return Reached{}, notFound(err, errDatabaseNotFound())
	}
	return reached, reached.Permit(action)
}

// ReachedOperation is an operation of a database that a caller may see.
type ReachedOperation struct {
	Reached
	operation operation.Operation
}

// Operation returns the operation as it was when ReachOperation found it.
func (r ReachedOperation) Operation() operation.Operation { return r.operation }

// ReachOperation finds an operation in the caller's scope. OPERATION_NOT_FOUND: it is missing, of another account, out of scope
// or of an internal kind. FORBIDDEN as for Reach.
func (a *Access) ReachOperation(
	ctx context.Context, c Caller, op id.OperationID, action account.Action,
) (ReachedOperation, error) {
	missing := fault.New(fault.OperationNotFound, "no such operation")
	if !c.Known() {
		return ReachedOperation{}, missing
	}
	reached := ReachedOperation{Reached: Reached{caller: c}}
	err := a.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if reached.operation, err = tx.Operations().Get(ctx, op); err != nil {
			return err
		}
		reached.record, reached.standing, err = tx.Databases().Reach(ctx, c.viewer(), reached.operation.DatabaseID)
		return err
	})
	if err != nil {
		return ReachedOperation{}, notFound(err, missing)
	}
	if !reached.operation.Kind.Public() {
		return ReachedOperation{}, missing
	}
	return reached, reached.Permit(action)
}

func errDatabaseNotFound() error { return fault.New(fault.DatabaseNotFound, "no such database") }

// notFound replaces ErrNoRow with the error of a resource.
func notFound(err, as error) error {
	if errors.Is(err, ports.ErrNoRow) {
		return as
	}
	return err
}
