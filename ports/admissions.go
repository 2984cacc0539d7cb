package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// Admissions finds the key of a request and takes one request out of the key's bucket, in one step, so that admitting a request
// costs one statement. All hosts share the bucket.
type Admissions interface {
	// Admit returns ErrNoRow for an unknown key ID. The bucket is touched only where the presented hash equals the stored one and
	// the key is not revoked, so that nobody can drain the bucket of a key whose secret they do not know. The caller still decides
	// with Key.Accepts.
	Admit(ctx context.Context, r AdmissionRequest) (Admission, error)
	// Take takes one request out of a bucket that belongs to no key.
	Take(ctx context.Context, bucket string, l ratelimit.Limit, now time.Time) (ratelimit.Decision, error)
	// Touch stores when keys were last used; older times than the stored ones change nothing.
	Touch(ctx context.Context, used map[id.KeyID]time.Time) error
	// Sweep deletes buckets that are full again.
	Sweep(ctx context.Context, now time.Time) error
}

// AdmissionRequest is a presented key and the route class that it asks for.
type AdmissionRequest struct {
	Credential account.Credential
	Class      ratelimit.Class
	Limit      ratelimit.Limit
	Now        time.Time
}

// Admission is everything that the checks before a route's handler need.
type Admission struct {
	Key         account.Key
	Account     account.Account
	Maintenance bool
	Decision    ratelimit.Decision // meaningful only where Key.Accepts
}
