// Package lease is a dispatcher's right to make the next attempt at something that is delivered at least once.
package lease

import "time"

// Lease is a dispatcher's right to make the next attempt. The epoch grows with every claim and every write of the outcome
// carries it, so a dispatcher that was suspended beyond the end of its lease records nothing; its attempt may have arrived, and
// is repeated.
type Lease struct {
	Owner     string     `db:"lease_owner"`
	Epoch     int64      `db:"lease_epoch"`
	Until     *time.Time `db:"lease_until"`
	NotBefore time.Time  `db:"not_before"` // no attempt before
}

// Held reports whether a dispatcher has the lease now.
func (l Lease) Held(now time.Time) bool { return l.Until != nil && now.Before(*l.Until) }

// Free reports whether a dispatcher may take the lease now: the attempt is due and nobody holds it.
func (l Lease) Free(now time.Time) bool { return !now.Before(l.NotBefore) && !l.Held(now) }

// Taken returns the lease as a claim leaves it.
func (l Lease) Taken(owner string, now time.Time, hold time.Duration) Lease {
	until := now.Add(hold)
	l.Owner, l.Epoch, l.Until = owner, l.Epoch+1, &until
	return l
}
