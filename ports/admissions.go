package ports

import (
	"context"
	"net/netip"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// Admissions finds the key of a request, and leases requests from the key's bucket.
//
// All hosts share a bucket. Together they never let in more than its limit: what a host has leased is missing to the others until
// it is given back or, where the host has died, until the bucket has refilled by time. A lease is at most an eighth of what is
// free. So while n-1 of n hosts hold leases of a key and use nothing, the n-th may let in as little as (7/8)^(n-1) of what is
// free: 77 % with three hosts. That lasts five seconds at most: ratelimit.Hold until a lease ends, a second until it is given
// back, and ratelimit.Hold until a host that was refused asks again. A single host lets in all.
type Admissions interface {
	// Find returns ErrNoRow for an unknown key ID. It writes nothing. The caller decides with Key.Admits.
	Find(ctx context.Context, key id.KeyID) (Admission, error)
	// FindForRead is Find with the summary of a database, where the key's account has it. Of the key and the account it leaves out
	// what neither the checks nor a read need: how they are named, how old they are, and the quotas.
	FindForRead(ctx context.Context, key id.KeyID, db id.DatabaseID) (Admission, error)
	// Lease is Find, and leases from the key's bucket, in one step. The bucket is touched only where Key.Admits says yes, so that
	// nobody can drain the bucket of a key whose secret they do not know, or use outside its networks; otherwise the grant means
	// nothing. After an error nobody knows whether the rest went back and something was leased: the caller forgets both.
	Lease(ctx context.Context, r LeaseRequest) (Admission, ratelimit.Grant, error)
	// Reserve is Find, and takes one request of an exact class out of the key's window, in one step. All hosts share the window. It
	// is touched only as the bucket is by Lease; otherwise the decision means nothing.
	Reserve(ctx context.Context, r Reservation) (Admission, ratelimit.Decision, error)
	// Return gives back what ended leases have left, each to its bucket. After an error it must not be tried again: what went back
	// may have been leased by others.
	Return(ctx context.Context, rests []Rest, now time.Time) error
	// Take takes one request out of a bucket that belongs to no key.
	Take(ctx context.Context, bucket string, l ratelimit.Limit, now time.Time) (ratelimit.Decision, error)
	// Touch stores when keys were last used; older times than the stored ones change nothing.
	Touch(ctx context.Context, used map[id.KeyID]time.Time) error
	// Sweep deletes buckets that are full again.
	Sweep(ctx context.Context, now time.Time) error
}

// LeaseRequest is a presented key, the route class that it asks for, and what its host asks of the bucket.
type LeaseRequest struct {
	Credential account.Credential
	Client     netip.Addr
	Class      ratelimit.Class
	Limit      ratelimit.Limit
	Ask        ratelimit.Ask
	Now        time.Time
}

// Reservation is a presented key and the exact class that it asks for.
type Reservation struct {
	Credential account.Credential
	Client     netip.Addr
	Class      ratelimit.Class
	Limit      ratelimit.Limit
	Now        time.Time
}

// Rest is what a lease of a key's bucket has left.
type Rest struct {
	Key   id.KeyID
	Class ratelimit.Class
	Limit ratelimit.Limit
	ratelimit.Stretch
}

// Admission is everything that the checks before a route's handler need.
type Admission struct {
	Key         account.Key
	Account     account.Account
	Maintenance bool
	Database    database.Summary // of FindForRead; empty where the account has none of the ID
}
