package mail

import "time"

// Hold is how long a claim lasts: longer than an attempt can take, with time to record its outcome.
const Hold = Timeout + 15*time.Second

// Lease is a dispatcher's right to make the next attempt. The epoch grows with every claim and every write of the outcome
// carries it, so a dispatcher that was suspended beyond the end of its lease records nothing; its mail may have been sent, and
// is sent again.
type Lease struct {
	Owner     string     `db:"lease_owner"`
	Epoch     int64      `db:"lease_epoch"`
	Until     *time.Time `db:"lease_until"`
	NotBefore time.Time  `db:"not_before"` // no attempt before
}

// Claimable reports whether a dispatcher may claim the mail now: it is due and nobody holds it.
func (m Mail) Claimable(now time.Time) bool {
	return !m.Status.Final() && !now.Before(m.NotBefore) && !m.UnderLease(now)
}

// UnderLease reports whether a dispatcher has the mail now.
func (m Mail) UnderLease(now time.Time) bool {
	return m.Status == Sending && m.Until != nil && now.Before(*m.Until)
}

// Claimed returns the mail as a claim leaves it.
func (m Mail) Claimed(owner string, now time.Time, hold time.Duration) Mail {
	until := now.Add(hold)
	m.Owner, m.Epoch, m.Until, m.Status = owner, m.Epoch+1, &until, Sending
	return m
}
