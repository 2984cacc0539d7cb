package operator

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Operators lists who may use the operator's console.
func (o *Operator) Operators(ctx context.Context) ([]ports.OperatorEntry, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) ([]ports.OperatorEntry, error) {
		return tx.Operators().List(ctx)
	})
}

// AddOperator lets a person use the operator's console, in sessions that were proved by a passkey. One who may stays as they are.
// VALIDATION_ERROR on "email": it is no user's.
func (o *Operator) AddOperator(ctx context.Context, email string) error {
	return o.changeOperator(ctx, email, audit.OperatorAdded, func(
		ctx context.Context, tx ports.Tx, user id.UserID,
	) (bool, error) {
		return tx.Operators().Add(ctx, user, o.base.Clock.Now())
	})
}

// RemoveOperator takes that back, from the next request on. VALIDATION_ERROR on "email": it is no operator's.
func (o *Operator) RemoveOperator(ctx context.Context, email string) error {
	return o.changeOperator(ctx, email, audit.OperatorRemoved, func(
		ctx context.Context, tx ports.Tx, user id.UserID,
	) (bool, error) {
		err := tx.Operators().Remove(ctx, user)
		return err == nil, base.NotFound(err, fault.Invalid("email", "is no operator's"))
	})
}

func (o *Operator) changeOperator(
	ctx context.Context, email string, what audit.Action, change func(context.Context, ports.Tx, id.UserID) (bool, error),
) error {
	email, err := account.ValidateEmail(email)
	if err != nil {
		return err
	}
	return o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		user, err := tx.Accounts().UserByEmail(ctx, email)
		if err != nil {
			return base.NotFound(err, fault.Invalid("email", "is no user's"))
		}
		if changed, err := change(ctx, tx, user.ID); err != nil || !changed {
			return err
		}
		return o.record(ctx, tx, "", what, audit.Details{"userId": string(user.ID)})
	})
}
