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
	checks  []Check

	mu     sync.Mutex
	on     map[brake.Reason]bool // as last told
	agreed time.Time             // when the clocks agreed, as last seen
}

// Check returns a reason for which work has to wait; nil where it finds none. Work waits where it returns an error, too.
type Check func(ctx context.Context) (*brake.Hold, error)

// recent is for how long work that deletes nothing relies on the last comparison. The clock must not have been set meanwhile: a
// jump ends it.
const recent = time.Second

func newBrake(p Ports) *Brake {
	return &Brake{store: p.Store, clock: p.Clock, journal: p.Journal, on: make(map[brake.Reason]bool)}
}

// Add adds a check. It is called before anything runs.
func (b *Brake) Add(c Check) { b.checks = append(b.checks, c) }

// Now returns the time by which work of a kind may be done; brake.Held where it has to wait. Work that deletes uses this time,
// and does not read the clock again: it may jump at any moment.
func (b *Brake) Now(ctx context.Context, w brake.Work) (time.Time, error) {
	now := b.clock.Now()
	if w == brake.Harmless || w == brake.Schedules && b.justAgreed(now) {
		return now, nil
	}
	hold, err := b.compare(ctx, now)
	if err != nil {
		return time.Time{}, err
	}
	holds := []brake.Hold{}
	if hold != nil {
		holds = append(holds, *hold)
	}
	for _, check := range b.checks {
		if hold, err = check(ctx); err != nil {
			return time.Time{}, err
		}
		if hold != nil {
			holds = append(holds, *hold)
		}
	}
	b.tell(ctx, now, holds)
	var held brake.Held
	for _, h := range holds {
		if h.Reason.Holds(w) {
			held = append(held, h)
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

// tell logs what holds, and what no longer does, and remembers it.
func (b *Brake) tell(ctx context.Context, now time.Time, holds []brake.Hold) {
	on := make(map[brake.Reason]bool)
	for _, h := range holds {
		on[h.Reason] = true
		b.journal.Log(ctx, ports.JournalEvent{What: "brake.on", Kind: string(h.Reason), Err: h})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for was := range b.on {
		if !on[was] {
			b.journal.Log(ctx, ports.JournalEvent{What: "brake.off", Kind: string(was)})
		}
	}
	if b.on = on; !on[brake.Clock] {
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
