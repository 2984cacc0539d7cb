package operator

import (
	"context"
	"strings"

	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Console gives the operator's use cases to people who are named as operators; see person.Session.Operates.
type Console struct{ operator *Operator }

// NewConsole makes it.
func NewConsole(o *Operator) *Console { return &Console{o} }

// Look returns the use cases, for those that decide nothing. Errors are those of person.Session.Operates.
func (c *Console) Look(by access.Caller) (*Operator, error) {
	if err := by.Operates(); err != nil {
		return nil, err
	}
	return c.operator, nil
}

// Change has do change something in the name of an operator, who says why: the activity log has both. Nothing is stored any more
// once the session has ended, or is an operator's no more.
//
// Errors are those of person.Session.Operates. VALIDATION_ERROR on "reason": it must have 1 to 300 characters. LOGIN_REQUIRED:
// the last proof is older than person.Recent.
func (c *Console) Change(
	ctx context.Context, by access.Caller, reason string, do func(context.Context, *Operator, operation.Order) error,
) error {
	if err := by.Operates(); err != nil {
		return err
	}
	if err := by.Session.RequireRecent(c.operator.base.Clock.Now()); err != nil {
		return err
	}
	reason = strings.TrimSpace(reason)
	if err := operation.CheckReason(reason); err != nil {
		return err
	}
	ctx = base.ByOperator(ctx, base.Mandate{
		Operator: by.User.Email, Reason: reason,
		Holds: func(ctx context.Context, tx ports.Tx) error { return by.StillOperates(ctx, tx, c.operator.base.Clock) },
	})
	return do(ctx, c.operator, operation.Order{By: by.User.Email, Reason: reason})
}
