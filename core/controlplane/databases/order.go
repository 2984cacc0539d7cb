package databases

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/ports"
)

// OrderLifecycle queues that a database is started or stopped, on the order of the people who run the service, and returns the
// status that it then has. It does so whether its account is suspended or not: one that is started stays closed until that is
// resumed. The operation is nil where the database has that status already.
//
// VALIDATION_ERROR on "action" or "reason". DATABASE_NOT_FOUND. DATABASE_STATE_CONFLICT as of SetLifecycle.
func (d *Databases) OrderLifecycle(
	ctx context.Context, db id.DatabaseID, action database.Event, by operation.Order,
) (status database.Status, o *operation.Operation, err error) {
	if _, err := database.ParseLifecycle(string(action)); err != nil {
		return "", nil, err
	}
	if err := by.Check(); err != nil {
		return "", nil, err
	}
	err = d.base.UpdateReached(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) (err error) {
		status, o, err = d.intend(ctx, tx, locked, operation.LifecycleInput{Action: string(action), Ordered: by.Ordered()},
			func(input json.RawMessage) operation.Operation {
				return d.base.Work.Queued(locked, KindLifecycle, input, work.Origin{Actor: audit.Operator})
			})
		return err
	})
	if err == nil && o != nil {
		d.base.Work.Reserved(KindLifecycle)
	}
	return status, o, err
}

// OrderCreate makes a database of an account on the order of the people who run the service; on, where it is not empty, is the
// server that gets it, and no other does. Keys of requests do not count. Errors are those of Create, and VALIDATION_ERROR on
// "reason" or, saying why the server does not take it, on "server".
func (d *Databases) OrderCreate(
	ctx context.Context, of account.Account, r CreateRequest, on id.ServerID, by operation.Order,
) (Created, error) {
	if err := by.Check(); err != nil {
		return Created{}, err
	}
	asked, err := r.check()
	if err != nil {
		return Created{}, err
	}
	asked.Schedule = cmp.Or(asked.Schedule, d.base.DefaultSchedule)
	release, err := d.base.Calls.Enter(ctx, of.ID, slot.Unplaced)
	if err != nil {
		return Created{}, err
	}
	defer release()
	draft, err := provision.New(d.base, of, asked)
	if err != nil {
		return Created{}, err
	}
	o, _, err := d.reserve(ctx, work.Origin{Actor: audit.Operator},
		provision.Making{Record: asked, On: on, Ordered: by.Ordered()}, draft)
	if err != nil {
		return Created{}, err
	}
	return d.finish(ctx, o, database.Viewer{AccountID: of.ID, Scope: account.FullAccount},
		"database show shows its status, and database rotate-owner gives it a password once it is active")
}
