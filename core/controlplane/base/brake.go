package base

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/ports"
)

// Brake is asked before anything is done because a time is over. It compares the host's clock with that of the metadata's
// server, and asks what else was added to it.
type Brake struct {
	store   ports.Store
	clock   ports.Clock
	journal ports.Journal
	checks  map[brake.Reason]Check

	mu     sync.Mutex
	on     map[brake.Reason]bool // as last told
	agreed time.Time             // when the clocks agreed, as last seen
}

// Check says whether work has to wait for a reason; nil: no. Work waits where it returns an error, too.
type Check func(ctx context.Context, now time.Time) (*brake.Hold, error)

// recent is for how long work that deletes nothing relies on the last comparison. The clock must not have been set meanwhile: a
// jump ends it.
const recent = time.Second

func newBrake(p Ports) *Brake {
	b := &Brake{
		store: p.Store, clock: p.Clock, journal: p.Journal, checks: make(map[brake.Reason]Check), on: make(map[brake.Reason]bool),
	}
	b.Add(brake.Clock, b.compare)
	return b
}

// Add adds the check of a reason. It is called before anything runs.
func (b *Brake) Add(r brake.Reason, c Check) { b.checks[r] = c }

// Now returns the time by which work of a kind may be done; brake.Held where it has to wait. Work that deletes uses this time,
// and does not read the clock again: it may jump at any moment.
func (b *Brake) Now(ctx context.Context, w brake.Work) (time.Time, error) {
	now := b.clock.Now()
	if w == brake.Harmless || w == brake.Schedules && b.justAgreed(now) {
		return now, nil
	}
	var held brake.Held
	for _, r := range brake.Reasons() {
		check := b.checks[r]
		if check == nil || !r.Holds(w) {
			continue
		}
		hold, err := check(ctx, now)
		if err != nil {
			return time.Time{}, err
		}
		b.tell(ctx, now, r, hold)
		if hold != nil {
			held = append(held, *hold)
		}
	}
	if len(held) > 0 {
		return time.Time{}, held
	}
	return now, nil
}

// compare compares the clocks, that of the host as it is without what it was moved on purpose.
func (b *Brake) compare(ctx context.Context, now time.Time) (*brake.Hold, error) {
	before := now.Add(-b.clock.Moved())
	metadata, err := ports.Read(ctx, b.store, func(ctx context.Context, tx ports.Tx) (time.Time, error) {
		return tx.Retention().Clock(ctx)
	})
	if err != nil {
		return nil, err
	}
	after := b.clock.Now().Add(-b.clock.Moved())
	return brake.Clocks(before, metadata, after), nil
}

func (b *Brake) justAgreed(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ago := now.Sub(b.agreed)
	return ago >= 0 && ago < recent
}

// tell logs whether work waits for a reason, or no longer does, and remembers it.
func (b *Brake) tell(ctx context.Context, now time.Time, r brake.Reason, hold *brake.Hold) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case hold != nil:
		b.journal.Log(ctx, ports.JournalEvent{What: "brake.on", Kind: string(r), Err: hold})
	case b.on[r]:
		b.journal.Log(ctx, ports.JournalEvent{What: "brake.off", Kind: string(r)})
	}
	if b.on[r] = hold != nil; hold == nil && r == brake.Clock {
		b.agreed = now
	}
}

// On reports whether something waits for a reason, as this process last saw.
func (b *Brake) On(r brake.Reason) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on[r]
}

// May returns nil where this process may claim work that others can do as well, and ErrNoRow where it has to leave it to them: by
// a wrong clock it would take what others work on, and keep it for as long as it is ahead.
func (b *Brake) May(ctx context.Context) error {
	_, err := b.Now(ctx, brake.Schedules)
	var held brake.Held
	if errors.As(err, &held) {
		return ports.ErrNoRow
	}
	return err
}
