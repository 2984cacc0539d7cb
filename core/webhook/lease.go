package webhook

import "time"

// Hold is how long a claim lasts: longer than an attempt can take, with time to record its outcome.
const Hold = 30 * time.Second

// Lease is a dispatcher's right to make the next attempt. The epoch grows with every claim and every write of the outcome
// carries it, so a dispatcher that was suspended beyond the end of its lease records nothing; its attempt may have arrived, and
// is repeated.
type Lease struct {
	Owner     string     `db:"lease_owner"`
	Epoch     int64      `db:"lease_epoch"`
	Until     *time.Time `db:"lease_until"`
	NotBefore time.Time  `db:"not_before"` // no attempt before
}

// Claimable reports whether a dispatcher may claim the delivery now: it is due and nobody holds it.
func (d Delivery) Claimable(now time.Time) bool {
	if d.Status.Final() || now.Before(d.NotBefore) {
		return false
	}
	return d.Until == nil || !now.Before(*d.Until)
}

// UnderLease reports whether a dispatcher has the delivery now. Such deliveries count as running attempts of their endpoint.
func (d Delivery) UnderLease(now time.Time) bool {
	return d.Status == Delivering && d.Until != nil && now.Before(*d.Until)
}

// Claimed returns the delivery as a claim leaves it.
func (d Delivery) Claimed(owner string, now time.Time, hold time.Duration) Delivery {
	until := now.Add(hold)
	d.Owner, d.Epoch, d.Until, d.Status = owner, d.Epoch+1, &until, Delivering
	return d
}
