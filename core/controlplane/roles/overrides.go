package roles

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Overrides are what the people who run the service see and do about changes of logins. They do not authenticate.
type Overrides struct{ *driver }

// NewOverrides makes the use cases.
func NewOverrides(p *base.Base) *Overrides { return &Overrides{&driver{p}} }

// Attempted is a change, and how many attempts at it were in vain.
type Attempted struct {
	role.Change
	Attempts int
}

// Changes lists the changes of the logins of a database, the latest first, without passwords.
func (o *Overrides) Changes(ctx context.Context, db id.DatabaseID) ([]Attempted, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (list []Attempted, err error) {
		changes, err := tx.RoleChanges().List(ctx, db)
		for _, c := range changes {
			c.Verifier, c.Sealed = "", nil
			of, missing := tx.Operations().Get(ctx, c.ID) // it may have been pruned
			if missing != nil && !errors.Is(missing, ports.ErrNoRow) {
				return nil, missing
			}
			list = append(list, Attempted{c, of.Failed()})
		}
		return list, err
	})
}

// EndedChange is a change that an operator has ended, and what was found at its login.
type EndedChange struct {
	Attempted
	Found role.Observation
}

// endTime bounds an order: its looks at a server that answers.
const endTime = 2 * time.Minute

// EndChange ends a pending change after a look at its login, so that the database is free for others. If the password that is
// kept lets nobody in, the login can be rotated again.
//
// VALIDATION_ERROR on "reason" or "serverGone". OPERATION_NOT_FOUND. MANAGED_ROLE_CONFLICT, or the code that the database's
// model has for it: the change has ended. AGENT_ERROR: the login could not be looked at, and the change is still pending.
// DATABASE_STATE_CONFLICT: somebody works on the change.
func (o *Overrides) EndChange(
	ctx context.Context, db id.DatabaseID, change id.OperationID, order operation.Order,
) (EndedChange, error) {
	if err := order.Check(); err != nil {
		return EndedChange{}, err
	}
	var record database.Record
	c, err := ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (c role.Change, err error) {
		if record, err = tx.Databases().Get(ctx, db); err != nil {
			return c, err
		}
		return tx.RoleChanges().Get(ctx, db, change)
	})
	if err != nil {
		return EndedChange{}, base.NotFound(err, fault.New(fault.OperationNotFound, "no such change of this database"))
	}
	if _, err := c.Status.Decide(role.Declined); err != nil {
		return EndedChange{}, role.ModelOf(record.RoleModel).Refusal(err)
	}
	if order.ServerGone {
		if err := o.base.CheckGone(ctx, record.ServerID); err != nil {
			return EndedChange{}, err
		}
	}
	done, err := o.base.Work.GiveUp(ctx, change, order, endTime, func(context.Context, ports.Tx) error { return nil })
	if err != nil {
		return EndedChange{}, err
	}
	ended, err := o.outcomeOf(ctx, c)
	ended.change.Verifier, ended.change.Sealed = "", nil
	return EndedChange{Attempted{ended.change, done.Failed()}, ended.Observed}, err
}
