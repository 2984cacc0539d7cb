package httpapi

import (
	"context"
	"net/netip"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// Gatekeeper is what the pipeline asks of the use cases before a handler runs.
type Gatekeeper interface {
	// Admit authenticates and takes one request out of the key's bucket. It returns UNAUTHORIZED, or RATE_LIMITED with
	// RetryAfter set, for the key's class as well as for too many unauthorised attempts of one client address. With
	// RATE_LIMITED for a valid key the Admission is filled in too.
	Admit(ctx context.Context, k Knock) (Admission, error)
	// Reach finds what a path names within the caller's reach, before the body is read. It returns, in this order, the
	// 404 of the target's kind, FEATURE_NOT_AVAILABLE or FEATURE_DISABLED, and FORBIDDEN. What it found is handed to
	// the handler, so that nothing is looked up twice.
	Reach(ctx context.Context, c Caller, n Need) (any, error)
}

// Knock is one attempt to come in.
type Knock struct {
	Key       string // as presented; empty where there is none
	Class     ratelimit.Class
	Client    netip.Addr
	RequestID string
}

// Admission is what a valid key brings. With RATE_LIMITED it is filled in too.
type Admission struct {
	Caller      Caller
	Rate        ratelimit.Decision
	Maintenance bool // a maintenance window is open
}

// Caller is who a valid key acts for. The zero value is nobody.
type Caller struct {
	Key       account.Key // without its hash
	Account   account.Account
	RequestID string
}

// Known reports whether a valid key was presented.
func (c Caller) Known() bool { return c.Key.ID != "" }

// Need says what a route does with what its path names.
type Need struct {
	Target  TargetKind
	ID      string // lower-case UUID, or empty where the route has no target
	Action  account.Action
	Feature string // the switch or enrolment that the route depends on; empty for none
}
