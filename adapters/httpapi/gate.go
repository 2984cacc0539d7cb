package httpapi

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Gatekeeper is what the pipeline asks of the use cases before a handler runs.
type Gatekeeper interface {
	// Admit authenticates and takes one request out of the key's bucket. It returns UNAUTHORIZED, or RATE_LIMITED for the
	// key's class as well as for too many unauthorised attempts of one client address. With RATE_LIMITED the Admission's
	// Rate is filled in too, and for a valid key all of it.
	Admit(ctx context.Context, k controlplane.Knock) (controlplane.Admission, error)
	// Reach finds what a path names within the caller's reach, before the body is read. It returns, in this order, the
	// 404 of the target's kind, FEATURE_DISABLED, and FORBIDDEN. What it found is handed to
	// the handler, so that nothing is looked up twice.
	Reach(ctx context.Context, c controlplane.Caller, n Need) (any, error)
}

// Need says what a route does with what its path names.
type Need struct {
	Target  TargetKind
	ID      string // lower-case UUID, or empty where the route has no target
	Action  account.Action
	Feature string // the operator's switch that the route depends on; empty for none
}

// NewGate makes the use cases the gatekeeper.
func NewGate(a *controlplane.Access) Gatekeeper { return gate{a} }

type gate struct{ *controlplane.Access }

// Reach finds the target as its kind has it: controlplane.Reached for a database, controlplane.ReachedOperation for an operation.
func (g gate) Reach(ctx context.Context, c controlplane.Caller, n Need) (found any, err error) {
	switch n.Target {
	case Database:
		found, err = g.Access.Reach(ctx, c, id.DatabaseID(n.ID), n.Action)
	case Operation:
		found, err = g.ReachOperation(ctx, c, id.OperationID(n.ID), n.Action)
	case Webhook:
		found, err = g.ReachWebhook(ctx, c, id.WebhookID(n.ID))
	case NoTarget:
	}
	if n.Feature != "" && (err == nil || fault.Has(err, fault.Forbidden)) { // out of scope comes before it, a right after it
		if off := g.RequireFeature(ctx, n.Feature); off != nil {
			return nil, off
		}
	}
	return found, err
}
