package mail

import "time"

// Hold is how long a claim lasts: longer than an attempt can take, with time to record its outcome.
const Hold = Timeout + 15*time.Second

// Claimable reports whether a dispatcher may claim the mail now: it is due and without a lease.
func (m Mail) Claimable(now time.Time) bool { return !m.Status.Final() && m.Free(now) }

// UnderLease reports whether a dispatcher has the mail now.
func (m Mail) UnderLease(now time.Time) bool { return m.Status == Sending && m.Held(now) }

// Claimed returns the mail as a claim leaves it.
func (m Mail) Claimed(owner string, now time.Time, hold time.Duration) Mail {
	m.Lease, m.Status = m.Taken(owner, now, hold), Sending
	return m
}
