package extensions

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Status returns an operation on an extension of the database. If it is open, its next step is due, and the caller might have
// asked for it, that is done first: it begins with a queued change, asks the agent how it goes, or ends the operation. So a
// client that keeps reading sees progress even while no batch host runs. To others it is shown as it is. OPERATION_NOT_FOUND: the
// database has no such operation, or it is of another kind.
func (x *Extensions) Status(ctx context.Context, r access.Reached, op id.OperationID) (operation.Operation, error) {
	if err := r.Permit(account.See, rollout.ExtensionCatalog); err != nil {
		return operation.Operation{}, err
	}
	o, err := x.get(ctx, r, op)
	if err != nil || !o.Claimable(x.base.Clock.Now()) || r.Permit(account.Configure) != nil {
		return o, err
	}
	x.advance(ctx, r, o)
	return x.get(ctx, r, op)
}

func (x *Extensions) get(ctx context.Context, r access.Reached, op id.OperationID) (operation.Operation, error) {
	missing := fault.New(fault.OperationNotFound, "the database has no such operation on an extension")
	o, err := ports.Read(ctx, x.base.Store, func(ctx context.Context, tx ports.Tx) (operation.Operation, error) {
		return tx.Operations().Get(ctx, op)
	})
	if err == nil && (o.DatabaseID != r.Record().ID || o.Kind != Kind) {
		err = missing
	}
	if err != nil {
		return operation.Operation{}, base.NotFound(err, missing)
	}
	return o, nil
}

// advance does the next step, if no worker does it and a call of the server is free at once. How it went stands in the operation:
// the reader is told of that alone. At most one step of an operation is done at a time, whoever reads it how often, and none
// before the pause that the last one asked for is over.
func (x *Extensions) advance(ctx context.Context, r access.Reached, o operation.Operation) {
	release, free := x.base.Calls.EnterNow(r.Caller().Account.ID, o.ServerID)
	if !free {
		return
	}
	defer release()
	_, _ = x.base.Work.Advance(ctx, o.ID, x.base.CheckWait) // the engine logs what went wrong
}
