package extensions

import (
	"context"
	"errors"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Start queues the installation or the upgrade of an extension. A repeated request returns its operation as it is then, and asks
// the server nothing.
//
// FORBIDDEN: a developer or viewer. VALIDATION_ERROR names the field. EXTENSION_MUTATION_UNAVAILABLE: see extension.Scene, or the
// key was used for something else. AGENT_ERROR: the server cannot say how the extension stands; nothing is queued.
// AGENT_ROUTE_UNAVAILABLE: its agent is to be updated.
func (x *Extensions) Start(ctx context.Context, r access.Reached, q extension.Request) (operation.Operation, error) {
	if err := r.Permit(account.Configure, rollout.ExtensionCatalog); err != nil {
		return operation.Operation{}, err
	}
	err := q.Check()
	if err == nil {
		q.Key, err = idempotency.Parse(string(q.Key))
	}
	if err != nil {
		return operation.Operation{}, err
	}
	known, repeated, err := x.before(ctx, r.Record(), q)
	if repeated || err != nil {
		return known, err
	}
	release, err := r.MayCall(ctx, x.base)
	if err != nil {
		return operation.Operation{}, err
	}
	defer release()
	entries, err := x.ask(ctx, r.Record())
	if err != nil {
		return operation.Operation{}, err
	}
	return x.queue(ctx, r, q, entries)
}

// before finds the operation of a repeated request, and refuses a new one where that needs no answer of the server. The scene is
// read first: whoever sees an operation there then finds its key too.
func (x *Extensions) before(
	ctx context.Context, r database.Record, q extension.Request,
) (known operation.Operation, repeated bool, err error) {
	err = x.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		s, err := sceneOf(ctx, tx, r)
		if err != nil {
			return err
		}
		if known, repeated, err = find(ctx, tx, r, q); repeated || err != nil {
			return err
		}
		return s.Calm()
	})
	return known, repeated, err
}

// queue commits the intent, if the request is still a new one and its extension may change.
func (x *Extensions) queue(
	ctx context.Context, r access.Reached, q extension.Request, entries []extension.Entry,
) (o operation.Operation, err error) {
	repeated := false
	err = r.Update(ctx, x.base, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if o, repeated, err = find(ctx, tx, locked, q); repeated || err != nil {
			return err
		}
		s, err := sceneOf(ctx, tx, locked)
		if err != nil {
			return err
		}
		if err := s.Admits(q, entries[slices.Index(extension.Names, q.Extension)]); err != nil {
			return err
		}
		o, err = x.add(ctx, tx, locked, r.Caller(), q)
		return err
	})
	if err == nil && !repeated {
		x.base.Work.Reserved(Kind)
	}
	return o, err
}

// add stores the operation, its key and a line of the activity log. The caller has locked the database.
func (x *Extensions) add(
	ctx context.Context, tx ports.Tx, locked database.Record, by access.Caller, q extension.Request,
) (operation.Operation, error) {
	key := idempotency.Record{
		AccountID: locked.AccountID, Route: routeOf(locked.ID), Key: q.Key, Fingerprint: q.Fingerprint(),
		CreatedAt: x.base.Clock.Now(),
	}
	version := q.Extension.Version(locked.PostgresVersion)
	o := x.base.Work.Queued(locked, Kind, operation.Encode(extension.Input{
		Extension: q.Extension, Change: q.Change, Version: version, IdempotencyKey: key.Derived(),
	}), by.Origin())
	key.ResourceID = string(o.ID)
	if err := tx.Operations().Add(ctx, o); err != nil {
		return o, err
	}
	if _, _, err := tx.Idempotency().Claim(ctx, key); err != nil { // it is new: whoever claims one has locked the database
		return o, err
	}
	return o, x.base.Audit(ctx, tx, locked, by.Actor(), audit.ExtensionRequested, audit.Details{
		"operationId": string(o.ID), "extension": string(q.Extension), "change": string(q.Change), "version": version,
	})
}

// routeOf is the route that keys belong to. Whoever may change the database shares its keys with everybody else who may.
func routeOf(db id.DatabaseID) string {
	return "POST /databases/" + string(db) + "/extensions/operations"
}

// find returns the operation that a request with this key has made, if there is one. EXTENSION_MUTATION_UNAVAILABLE: that was
// another request.
func find(
	ctx context.Context, tx ports.Tx, r database.Record, q extension.Request,
) (o operation.Operation, found bool, err error) {
	key, err := tx.Idempotency().Get(ctx, r.AccountID, routeOf(r.ID), q.Key)
	switch {
	case errors.Is(err, ports.ErrNoRow):
		return o, false, nil
	case err != nil:
		return o, false, err
	}
	if err := q.AdmitsReplay(key); err != nil {
		return o, false, err
	}
	o, err = tx.Operations().Get(ctx, id.OperationID(key.ResourceID))
	return o, err == nil, err
}

func sceneOf(ctx context.Context, tx ports.Tx, r database.Record) (s extension.Scene, err error) {
	s.Database = r
	open, err := tx.Operations().Open(ctx, r.ID)
	if err = base.NotFound(err, nil); err != nil {
		return s, err
	}
	s.Open = open.Kind
	change, err := tx.RoleChanges().Pending(ctx, r.ID)
	s.Change = change.ID
	return s, base.NotFound(err, nil)
}
