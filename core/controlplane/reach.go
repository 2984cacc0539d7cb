package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// passage is how a target was reached: by whom, and through which gates. Every kind of target embeds it.
type passage struct {
	caller Caller
	gates  []rollout.Gate
}

// target is what a caller reaches: a kind brings its finder and, if its gates need enrolments, the database that has them.
type target interface {
	home() id.DatabaseID
	pass(ctx context.Context, tx ports.Tx, home id.DatabaseID) error
}

// home is no database: only features open the gates of a target that belongs to none.
func (passage) home() id.DatabaseID { return "" }

// pass asks what the operator has opened, which takes a statement, only where there is a gate.
func (p passage) pass(ctx context.Context, tx ports.Tx, home id.DatabaseID) error {
	if len(p.gates) == 0 {
		return nil
	}
	granted, err := tx.Switches().Grants(ctx, home)
	for _, g := range p.gates {
		if err == nil {
			err = g.Check(granted)
		}
	}
	return err
}

// find is how every kind of target is reached: first by its finder, which returns ErrNoRow for what the caller may not see, then
// through its gates. So what is out of reach is missing, whether the gates are open or not. The member's right comes after both.
func find[T target](
	ctx context.Context, a *Access, c Caller, missing error, finder func(context.Context, ports.Tx) (T, error),
) (T, error) {
	var found, none T
	if !c.Known() {
		return none, missing
	}
	err := a.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if found, err = finder(ctx, tx); err != nil {
			return notFound(err, missing)
		}
		return found.pass(ctx, tx, found.home())
	})
	if err != nil {
		return none, err
	}
	return found, nil
}

// Reached is a database that a caller may see. Only Access.Reach creates one, so it proves that the scope was checked, and which
// gates were open. The record is a snapshot from that moment; use cases that write lock the database and read it again.
type Reached struct {
	passage
	record   database.Record
	standing account.Standing
}

// Record returns the database as it was when Reach found it.
func (r Reached) Record() database.Record { return r.record }

func (r Reached) home() id.DatabaseID { return r.record.ID }

// Standing returns the caller's standing on the database.
func (r Reached) Standing() account.Standing { return r.standing }

// Permit returns FORBIDDEN if the caller's standing does not allow the action. A use case names the gates that it stands behind:
// for a database that was not reached through all of them the error is internal, as it is the calling program's mistake.
func (r Reached) Permit(a account.Action, gates ...rollout.Gate) error {
	if r.record.ID == "" {
		return errDatabaseNotFound()
	}
	for _, g := range gates {
		if !slices.Contains(r.gates, g) {
			return fmt.Errorf("controlplane: this needs a database that was reached through the gate %s", g)
		}
	}
	return account.Permit(r.standing, a)
}

// Reach finds a database in the caller's scope, for a use case behind these gates. DATABASE_NOT_FOUND: it is missing, of another
// account, out of scope or, for a selected-database key, being deleted. FEATURE_NOT_AVAILABLE or FEATURE_DISABLED: a gate is
// closed. FORBIDDEN: the caller sees it, but may not do the action.
func (a *Access) Reach(
	ctx context.Context, c Caller, db id.DatabaseID, action account.Action, gates ...rollout.Gate,
) (Reached, error) {
	p := passage{c, gates}
	reached, err := find(ctx, a, c, errDatabaseNotFound(), func(ctx context.Context, tx ports.Tx) (Reached, error) {
		return p.reach(ctx, tx, db)
	})
	if err != nil {
		return Reached{}, err
	}
	return reached, reached.Permit(action)
}

func (p passage) reach(ctx context.Context, tx ports.Tx, db id.DatabaseID) (Reached, error) {
	record, standing, err := tx.Databases().Reach(ctx, p.caller.viewer(), db)
	return Reached{p, record, standing}, err
}

// ReachedOperation is an operation of a database that a caller may see.
type ReachedOperation struct {
	Reached
	operation operation.Operation
}

// Operation returns the operation as it was when ReachOperation found it.
func (r ReachedOperation) Operation() operation.Operation { return r.operation }

// ReachOperation finds an operation in the caller's scope. OPERATION_NOT_FOUND: it is missing, of another account, out of scope
// or of an internal kind. The other errors are those of Reach.
func (a *Access) ReachOperation(
	ctx context.Context, c Caller, op id.OperationID, action account.Action, gates ...rollout.Gate,
) (ReachedOperation, error) {
	p, missing := passage{c, gates}, fault.New(fault.OperationNotFound, "no such operation")
	reached, err := find(ctx, a, c, missing, func(ctx context.Context, tx ports.Tx) (ReachedOperation, error) {
		found, err := tx.Operations().Get(ctx, op)
		if err != nil {
			return ReachedOperation{}, err
		}
		if !a.worker.Spec(found.Kind).Public {
			return ReachedOperation{}, ports.ErrNoRow
		}
		r, err := p.reach(ctx, tx, found.DatabaseID)
		return ReachedOperation{r, found}, err
	})
	if err != nil {
		return ReachedOperation{}, err
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
