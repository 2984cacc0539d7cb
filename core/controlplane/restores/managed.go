package restores

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Reserve makes a managed restore, which changes nothing yet: Advance does. A repeated request returns its operation as it is
// then. KEY_SCOPE_DENIED: no full-account key; a person has none. FORBIDDEN: anyone but the owner. RESTORE_OPERATION_TERMINAL:
// the key's restore has failed or was canceled. The other errors are those of restore.Request.Check,
// restore.Scene.AdmitsManaged and, for a moment, of Moments.Admit.
func (r *Restores) Reserve(
	ctx context.Context, reached access.Reached, q restore.Request,
) (o operation.Operation, err error) {
	if err := reached.Caller().RequireFullAccountKey(); err != nil {
		return o, err
	}
	if err := reached.Permit(account.Own); err != nil {
		return o, err
	}
	q.DatabaseID = reached.Record().ID
	if err := q.Check(); err != nil {
		return o, err
	}
	if err := r.asOf(ctx, reached, q); err != nil {
		return o, err
	}
	fresh := false
	err = reached.Update(ctx, r.base, func(ctx context.Context, tx ports.Tx, locked database.Record) (err error) {
		o, fresh, err = r.reserve(ctx, tx, locked, reached, q)
		return err
	})
	if err != nil {
		return operation.Operation{}, err
	}
	if fresh {
		r.base.Work.Reserved(Kind)
	}
	return ended(o)
}

// asOf decides about the moment of a request, of which the first request with its key has asked already.
func (r *Restores) asOf(ctx context.Context, reached access.Reached, q restore.Request) error {
	if q.At == nil {
		return nil
	}
	if known, err := reached.Asked(ctx, r.base, restore.KeyRoute, q.Key); known || err != nil {
		return err
	}
	return r.admits(ctx, reached, *q.At)
}

// reserve claims the key first: it belongs to the account, so the lock of one database does not keep others from using it.
func (r *Restores) reserve(
	ctx context.Context, tx ports.Tx, locked database.Record, reached access.Reached, q restore.Request,
) (o operation.Operation, fresh bool, err error) {
	o = r.operation(locked, reached)
	o.NotBefore = o.CreatedAt.Add(restore.CallerAway)
	known, fresh, err := tx.Idempotency().Claim(ctx, idempotency.Record{
		AccountID: locked.AccountID, Route: restore.KeyRoute, Key: q.Key, Fingerprint: q.Fingerprint(),
		ResourceID: string(o.ID), CreatedAt: o.CreatedAt,
	})
	if err != nil {
		return o, fresh, err
	}
	if !fresh {
		if err := q.AdmitsReplay(known); err != nil {
			return o, fresh, err
		}
		o, err = tx.Operations().Get(ctx, id.OperationID(known.ResourceID))
		return o, fresh, err
	}
	input, err := r.inputOf(ctx, tx, locked, q)
	if err == nil {
		o, err = r.add(ctx, tx, locked, o, input)
	}
	return o, fresh, err
}

// inputOf decides about a managed restore, and from which file it is made.
func (r *Restores) inputOf(
	ctx context.Context, tx ports.Tx, locked database.Record, q restore.Request,
) (input restore.Input, err error) {
	input = restore.Input{Managed: true, Filename: q.Filename, At: q.At, Consents: q.Consents}
	s, of, err := sceneOf(ctx, tx, locked, q.Filename)
	if err != nil {
		return input, err
	}
	if q.At == nil {
		if err := s.AdmitsManaged(of, r.base.Clock.Now()); err != nil {
			return input, err
		}
		input.ManifestSHA256 = of.ManifestSHA256
		return input, nil
	}
	if err := s.AdmitsManagedThen(); err != nil {
		return input, err
	}
	taken, err := tx.Backups().Names(ctx, locked.ID)
	input.Filename = backup.FreeFilename(r.base.Clock.Now(), taken)
	return input, err
}

// ended refuses what the table says that nobody can advance any more: RESTORE_OPERATION_TERMINAL, with the reason.
func ended(o operation.Operation) (operation.Operation, error) {
	_, err := restore.Machine.Decide(restore.Machine.Of(o), stage.Advance)
	if f := o.Failure(); err != nil && f != nil {
		err = fault.New(fault.RestoreOperationTerminal, "the restore has failed: %s: %s", f.Code, f.Message)
	}
	return o, err
}

// Advance does the next bounded step of a managed restore of the database, which is given as it was reached, unless somebody else
// does it at this moment, and returns the operation as it is then. If a step has no answer yet, the next advance goes on with it.
//
// KEY_SCOPE_DENIED, FORBIDDEN: as for Reserve. OPERATION_NOT_FOUND: it is no managed restore of the database, or the caller has
// lost the right meanwhile. RESTORE_OPERATION_TERMINAL: it has failed or was canceled. MANAGED_ROLE_CONFLICT: it has not begun,
// and a change of a login is unfinished. AGENT_ROUTE_UNAVAILABLE: the agent of the database's server is to be updated.
// RATE_LIMITED, SERVER_BUSY: see Reached.MayCall.
func (r *Restores) Advance(
	ctx context.Context, reached access.Reached, o operation.Operation,
) (operation.Operation, error) {
	none := operation.Operation{}
	if err := reached.Caller().RequireFullAccountKey(); err != nil {
		return none, err
	}
	if err := reached.Permit(account.Own); err != nil {
		return none, err
	}
	if err := isManaged(reached.Record(), o); err != nil {
		return none, err
	}
	if o, err := ended(o); err != nil || o.Status.Final() {
		return o, err
	}
	release, err := reached.MayCall(ctx, r.base)
	if err != nil {
		return none, err
	}
	defer release()
	if err := r.mayStep(ctx, reached, o); err != nil {
		return none, err
	}
	now, err := r.base.Work.Advance(ctx, o.ID, r.base.RoleWait) // the engine logs what went wrong
	switch {
	case err == nil:
		return ended(now)
	case base.Unserved(err):
		return none, fault.Wrap(err, fault.AgentRouteUnavailable,
			"restores are unavailable until the agent of the database server is updated")
	}
	now, err = ports.Read(ctx, r.base.Store, func(ctx context.Context, tx ports.Tx) (operation.Operation, error) {
		return tx.Operations().Get(ctx, o.ID) // it has ended, or somebody else works on it
	})
	if err != nil {
		return none, base.NotFound(err, errNotFound())
	}
	return ended(now)
}

// isManaged returns OPERATION_NOT_FOUND for everything but a managed restore of the database.
func isManaged(r database.Record, o operation.Operation) error {
	if o.DatabaseID != r.ID || o.Kind != Kind {
		return errNotFound()
	}
	input, err := operation.Decode[restore.Input](o.Input)
	if err == nil && !input.Managed {
		err = errNotFound()
	}
	return err
}

func errNotFound() error {
	return fault.New(fault.OperationNotFound, "the database has no such managed restore")
}

// mayStep looks once more whether the caller still has the right, and tells what a restore that has not begun waits for.
func (r *Restores) mayStep(ctx context.Context, reached access.Reached, o operation.Operation) error {
	if err := reached.Holds(ctx, r.base); fault.Has(err, fault.DatabaseNotFound) {
		return errNotFound()
	} else if err != nil {
		return err
	}
	if o.Status != operation.Queued {
		return nil
	}
	s := restore.Scene{Database: reached.Record()}
	return r.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := readLogins(ctx, tx, &s); err != nil {
			return err
		}
		return s.Calm()
	})
}
