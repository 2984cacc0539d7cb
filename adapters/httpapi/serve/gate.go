package serve

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/rollout"
)

// Gatekeeper is what the pipeline asks of the use cases before a handler runs.
type Gatekeeper interface {
	// Admit authenticates and takes one request out of the key's bucket. It returns UNAUTHORIZED, or RATE_LIMITED for the
	// key's class as well as for too many unauthorised attempts of one client address, or ACCOUNT_SUSPENDED. With the last two the
	// Admission's Rate is filled in too, and for a valid key all of it.
	Admit(ctx context.Context, k access.Attempt) (access.Admission, error)
	// AdmitAddress is for a route without a key: it takes one request out of the bucket of the client's address. It returns
	// RATE_LIMITED, or MAINTENANCE; the Admission's Rate is filled in.
	AdmitAddress(ctx context.Context, k access.Attempt) (access.Admission, error)
	// Reach finds what a path names within the caller's reach, before the body is read. It returns, in this order, the
	// 404 of the target's kind, the refusal of a closed gate, and FORBIDDEN. What it found is handed to
	// the handler, so that nothing is looked up twice.
	Reach(ctx context.Context, c access.Caller, n Need) (any, error)
}

// Need says what a route does with what its path names.
type Need struct {
	Target  *Target
	ID      string           // lower-case UUID
	Summary database.Summary // what the admission has read, where the target is a summary
	Action  account.Action
	Gate    rollout.Gate // empty for none
}
