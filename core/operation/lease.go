package operation

import "time"

// Lease is a worker's right to work on an operation. The epoch grows with every claim; every later write of the worker and
// every command that it sends to the agent carries it, so a worker that was suspended beyond the end of its lease changes
// nothing.
type Lease struct {
	Owner     string     `db:"lease_owner"`
	Epoch     int64      `db:"lease_epoch"`
	Until     *time.Time `db:"lease_until"`
	Attempts  int        `db:"attempts"`   // claims since the work last made progress
	NotBefore time.Time  `db:"not_before"` // no claim before
}

// Claimable reports whether a worker may claim the operation now: it is due and without a lease.
func (o Operation) Claimable(now time.Time) bool {
	if o.Status.Final() || now.Before(o.NotBefore) {
		return false
	}
	return o.Until == nil || !now.Before(*o.Until)
}

// Failed counts the attempts since the work last made progress that did not take the operation further.
func (o Operation) Failed() int {
	if o.Until != nil || o.Status.Final() {
		return max(o.Attempts-1, 0) // the last one is under way, or has ended it
	}
	return o.Attempts
}

// Claimed returns the operation as a claim leaves it.
func (o Operation) Claimed(owner string, now time.Time, hold time.Duration) Operation {
	until := now.Add(hold)
	o.Owner, o.Epoch, o.Until, o.Attempts = owner, o.Epoch+1, &until, o.Attempts+1
	o.Status = Running
	if o.StartedAt == nil {
		o.StartedAt = &now
	}
	return o
}

// Backoff is the pause before the next attempt at an operation whose outcome is not known yet: one second, doubled each time,
// at most one minute. There is no last attempt.
func Backoff(attempts int) time.Duration {
	return min(time.Minute, time.Second<<min(max(attempts, 1)-1, 6))
}
