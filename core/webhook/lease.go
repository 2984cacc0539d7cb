package webhook

import "time"

// Hold is how long a claim lasts: longer than an attempt can take, with time to record its outcome.
const Hold = 30 * time.Second

// Claimable reports whether a dispatcher may claim the delivery now: it is due and without a lease.
func (d Delivery) Claimable(now time.Time) bool { return !d.Status.Final() && d.Free(now) }

// UnderLease reports whether a dispatcher has the delivery now. Such deliveries count as running attempts of their endpoint.
func (d Delivery) UnderLease(now time.Time) bool { return d.Status == Delivering && d.Held(now) }

// Claimed returns the delivery as a claim leaves it.
func (d Delivery) Claimed(owner string, now time.Time, hold time.Duration) Delivery {
	d.Lease, d.Status = d.Taken(owner, now, hold), Delivering
	return d
}
