// Package looks has databases back as they were, in servers beside the live ones, and takes from there what their owners ask for.
package looks

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Looks are the use cases.
type Looks struct {
	base *base.Base
	past Past
}

// Past says of databases as of which moments they can be had back.
type Past struct {
	// Admits decides about one moment, as Moments.Admit does.
	Admits func(ctx context.Context, r access.Reached, at time.Time) error
	// Window is what of an archive is the customer's, as Moments.Window has it.
	Window func(ctx context.Context, r access.Reached) (recovery.Window, error)
}

// New makes the use cases, and registers their kinds.
func New(p *base.Base, past Past) *Looks {
	l := &Looks{base: p, past: past}
	l.registerRescues()
	l.registerComparisons()
	l.registerSearches()
	return l
}

// mayStart decides who may have such an operation: KEY_SCOPE_DENIED, FORBIDDEN.
func mayStart(r access.Reached) error {
	if err := r.Caller().RequireFullAccount(); err != nil {
		return err
	}
	return r.Permit(account.Own, rollout.Clone)
}

// asked is a request for an operation.
type asked struct {
	kind        operation.Kind
	route       string          // that keys belong to
	key         idempotency.Key // empty: every request is another operation
	fingerprint idempotency.Fingerprint
	moments     []time.Time
	input       any
	secret      any // what of the input is sealed; nil: nothing is
	requested   audit.Action
	details     audit.Details
	complete    func(ctx context.Context, a *asked) error // adds what the agent is asked for first; nil: it is whole
}

// start queues an operation. With a key, a repeated request returns the same one as it is then, with its result.
//
// KEY_SCOPE_DENIED: no full-account key. FORBIDDEN: anyone but the owner. DATABASE_STATE_CONFLICT: the key was used for another
// request, or the status or an open operation forbids it. The other errors are those of Moments.Admit.
func (l *Looks) start(ctx context.Context, reached access.Reached, q asked) (o operation.Operation, err error) {
	if err := mayStart(reached); err != nil {
		return o, err
	}
	if q.key != "" {
		if _, err := idempotency.Parse(string(q.key)); err != nil {
			return o, err
		}
	}
	if err := l.asOf(ctx, reached, &q); err != nil {
		return o, err
	}
	fresh := false
	err = reached.Update(ctx, l.base, func(ctx context.Context, tx ports.Tx, locked database.Record) (err error) {
		o, fresh, err = l.reserve(ctx, tx, locked, reached, q)
		return err
	})
	if err != nil {
		return operation.Operation{}, err
	}
	if fresh {
		l.base.Work.Reserved(q.kind)
	}
	return reached.Shown(l.base, o)
}

// asOf decides about the moments of a request, of which the first request with its key has asked already.
func (l *Looks) asOf(ctx context.Context, reached access.Reached, q *asked) error {
	if known, err := reached.Asked(ctx, l.base, q.route, q.key); known || err != nil {
		return err
	}
	if q.complete != nil {
		if err := q.complete(ctx, q); err != nil {
			return err
		}
	}
	for _, at := range q.moments {
		if err := l.past.Admits(ctx, reached, at); err != nil {
			return err
		}
	}
	return nil
}

// reserve commits the intent: key and operation, in one transaction that has locked the database.
func (l *Looks) reserve(
	ctx context.Context, tx ports.Tx, locked database.Record, by access.Reached, q asked,
) (o operation.Operation, fresh bool, err error) {
	o = l.base.Work.Queued(locked, q.kind, operation.Encode(q.input), by.Caller().Origin())
	if q.secret != nil {
		if o.SealedInput, err = l.base.Secrets.Seal(operation.Encode(q.secret), o.InputContext()); err != nil {
			return o, false, err
		}
	}
	if q.key != "" {
		stored, fresh, err := tx.Idempotency().Claim(ctx, idempotency.Record{
			AccountID: locked.AccountID, Route: q.route, Key: q.key, Fingerprint: q.fingerprint, ResourceID: string(o.ID),
			CreatedAt: o.CreatedAt,
		})
		if err == nil && !fresh {
			err = stored.Replay(q.fingerprint, fault.DatabaseStateConflict)
		}
		if err != nil {
			return o, false, err
		}
		if !fresh {
			o, err = tx.Operations().Get(ctx, id.OperationID(stored.ResourceID))
			return o, false, err
		}
	}
	open, err := tx.Operations().Open(ctx, locked.ID)
	if err = base.NotFound(err, nil); err != nil {
		return o, false, err
	}
	if err := (recovery.Scene{Database: locked, Open: open.ID}).Admits(); err != nil {
		return o, false, err
	}
	if err := tx.Operations().Add(ctx, o); err != nil {
		return o, false, err
	}
	q.details["operationId"] = string(o.ID)
	return o, true, l.base.Audit(ctx, tx, locked, o.Actor, q.requested, q.details)
}
