// Package preview holds the rules of preview databases: short-lived databases that a CI pipeline makes, each for a ref of its
// own, and that end with their lease (spec, "Preview databases (CI)").
package preview

import (
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// Preview is what a database is as a preview. Its record is the database's own; this goes with that.
type Preview struct {
	DatabaseID  id.DatabaseID  `db:"database_id"`
	NamespaceID id.NamespaceID `db:"namespace_id"`
	Ref         string         `db:"ref"`
	// Use is how often the namespace has used the ref by then, from 1: a deleted preview keeps its name until it is purged.
	Use int `db:"use"`
	// Choices are those of the request that made it. What has been changed since is not part of them.
	Choices

	Lease      Lease     `db:"lease_status"`
	Generation int64     `db:"lease_generation"`
	ExpiresAt  time.Time `db:"expires_at"`
	// EndAt is when the service tries to end an expired lease; Failures is how often that has failed.
	EndAt    *time.Time `db:"end_at"`
	Failures int        `db:"failures"`
	// EndingSince is when the service began to delete it because its lease had ended; nil where somebody asked for it.
	EndingSince *time.Time `db:"ending_since"`

	// Schedule and RecoveryDeadline are those of its database. A preview that is not deleted has no deadline.
	Schedule         database.Schedule `db:"schedule"`
	RecoveryDeadline *time.Time        `db:"recovery_deadline"`
}

// Choices are what a request for a preview may choose.
type Choices struct {
	TTLHours        int               `db:"ttl_hours"`
	ScheduledBackup database.Schedule `db:"scheduled_backup"`
	// SourceID and SourceAt say of which database it has the data, and as of which moment; both are left out where it has none.
	SourceID id.DatabaseID `db:"source_id"`
	SourceAt *time.Time    `db:"source_at"`
}

func (c Choices) equal(o Choices) bool {
	sameTime := c.SourceAt == nil && o.SourceAt == nil || c.SourceAt != nil && o.SourceAt != nil && c.SourceAt.Equal(*o.SourceAt)
	return c.TTLHours == o.TTLHours && c.ScheduledBackup == o.ScheduledBackup && c.SourceID == o.SourceID && sameTime
}

// data says of a preview whose data it has, where it has any.
func (c Choices) data() string {
	if c.SourceAt == nil {
		return ""
	}
	return ", with the data of database " + string(c.SourceID) + " of " + recovery.Text(*c.SourceAt)
}

// The bounds of a lease, in hours (spec, "Limits").
const (
	MostHours    = 72
	DefaultHours = 24
	// RecoveredHours is the lease of a preview that was recovered.
	RecoveredHours = 24
)

// CheckHours returns VALIDATION_ERROR for what is no length of a lease.
func CheckHours(hours int) error {
	if hours < 1 || hours > MostHours {
		return fault.Invalid("ttlHours", "must be from 1 to %d", MostHours)
	}
	return nil
}

// New is a preview whose lease begins now, in the n-th use of its ref.
func New(db id.DatabaseID, namespace id.NamespaceID, ref string, n int, c Choices, now time.Time) Preview {
	return Preview{
		DatabaseID: db, NamespaceID: namespace, Ref: ref, Use: n, Choices: c,
		Lease: Active, Generation: 1, ExpiresAt: now.Add(hours(c.TTLHours)),
		Schedule: c.ScheduledBackup,
	}
}

func hours(n int) time.Duration { return time.Duration(n) * time.Hour }

// At is the preview as its lease is at a time: one whose time is over has ended, whether that is recorded yet or not.
func (p Preview) At(now time.Time) Preview {
	if p.Lease == Active && !now.Before(p.ExpiresAt) {
		p.Lease, p.EndAt = Expired, &p.ExpiresAt
	}
	return p
}

// LeaseField is the field that a refusal names where a preview is no longer active. Whoever wants one deleted whose lease is
// expired or deleting has nothing to do.
const LeaseField = "leaseStatus"

// Replay decides about a request for a ref that a preview has: PREVIEW_CONFLICT where it chooses anything else than the request
// that made the preview, or where the preview is about to be deleted.
func (p Preview) Replay(c Choices) error {
	if !p.Choices.equal(c) {
		return fault.New(fault.PreviewConflict, "the ref has a preview that was made with ttlHours %d and scheduledBackup %s%s",
			p.TTLHours, p.ScheduledBackup, p.data())
	}
	if p.Lease != Active {
		ended := fault.New(fault.PreviewConflict, "the ref has a preview that is no longer active (%s): repeat the request when "+
			"that is deleted", p.Lease.Shown())
		ended.Details = []fault.Detail{{Field: LeaseField, Issue: string(p.Lease.Shown())}}
		return ended
	}
	return nil
}

// apply applies an event of the machine.
func (p Preview) apply(e Event) (Preview, error) {
	cell, err := p.Lease.Decide(e)
	if err != nil {
		return p, err
	}
	p.Lease = cell.Next
	return p, nil
}

// Extend renews the lease from now on, and never shortens it. PREVIEW_LEASE_ENDED.
func (p Preview) Extend(ttlHours int, now time.Time) (Preview, error) {
	p, err := p.At(now).apply(Extend)
	if err != nil {
		return p, err
	}
	if until := now.Add(hours(ttlHours)); until.After(p.ExpiresAt) {
		p.ExpiresAt = until
	}
	p.Generation++
	return p, nil
}

// Configure decides about another backup policy. PREVIEW_CONFLICT.
func (p Preview) Configure(now time.Time) (Preview, error) { return p.At(now).apply(Configure) }

// End is the preview as its deletion has begun; by the service, where its lease has ended. One whose deletion has begun
// before, or is over, stays as it is: begun is then false.
func (p Preview) End(now time.Time, byService bool) (ending Preview, begun bool, err error) {
	p = p.At(now)
	if ending, err = p.apply(End); err != nil || ending.Lease == p.Lease {
		return ending, false, err
	}
	ending.EndAt, ending.EndingSince = nil, nil
	if byService {
		ending.EndingSince = &now
	}
	return ending, true, nil
}

// Release ends the lease of a preview that cannot be deleted just now, as an operation of its is open: the service deletes it as
// soon as it can.
func (p Preview) Release(now time.Time) (Preview, error) {
	p, err := p.At(now).apply(Expire)
	if err == nil && p.Lease == Expired {
		p.ExpiresAt, p.EndAt = earlier(p.ExpiresAt, now), &now
	}
	return p, err
}

// Follow is the preview after what happens to its database: End, Ended, EndFailed, Recover, Recovered or RecoverFailed. A
// deletion that has failed or was canceled ends the lease all the same, and the service tries again. A recovery takes the ref
// from its beginning on, and its success begins a new lease.
func (p Preview) Follow(e Event, now time.Time) (Preview, error) {
	if e == End {
		ending, _, err := p.End(now, false)
		return ending, err
	}
	p, err := p.apply(e)
	switch e { //nolint:exhaustive // of the others the table says all
	case Ended:
		p.EndingSince, p.Failures = nil, 0
	case EndFailed:
		p.Failures++
		next := now.Add(Pause(p.Failures))
		p.ExpiresAt, p.EndAt, p.EndingSince = earlier(p.ExpiresAt, now), &next, nil
	case Recovered:
		p.ExpiresAt = now.Add(hours(RecoveredHours))
		p.Generation++
	}
	return p, err
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// The pauses between two attempts to delete a preview whose lease has ended.
const (
	firstPause = 30 * time.Second
	mostPause  = 24 * time.Hour
	// BusyPause is how long the service waits where something else than an operation keeps it from beginning.
	BusyPause = 30 * time.Second
	// LongEnd is how long a deletion holds up the next one on its server that the service is to begin.
	LongEnd = 5 * time.Minute
)

// Pause is how long the service waits after so many failures.
func Pause(failures int) time.Duration {
	pause := firstPause
	for range failures - 1 {
		if pause *= 2; pause >= mostPause {
			return mostPause
		}
	}
	return pause
}
