package pgdb

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Work that lost a race or its connection is tried up to maxAttempts times, which takes a second and a half. While the server
// cannot be reached, no attempt begins after maxOutage: waiting out longer outages is left to the caller.
const (
	maxAttempts = 12
	maxOutage   = 2 * time.Second
	maxPause    = 250 * time.Millisecond
)

// A claim that others are in the way of is tried for maxContention, after pauses of up to 32 ms: each of the others is done
// within milliseconds and may claim again at once, so a few rare attempts could all come at the wrong moment.
const (
	maxContention   = 7 * time.Second
	contendedPauses = 4
)

const (
	// longest bounds work whose caller has set no deadline: no round and no worker waits for a dead server for ever.
	longest = 30 * time.Second
	// patience is what awaited work has, for each statement or transaction with all its attempts.
	patience = 7 * time.Second
)

// again runs work until it succeeds, or fails for a reason that another attempt would not change. Failed work must leave
// nothing behind.
func (d *DB) again(ctx context.Context, work func(ctx context.Context) error) error {
	ctx, end, err := d.bounded(ctx)
	if err != nil {
		return err
	}
	defer end()
	begun := time.Now()
	for attempt := 1; ; attempt++ {
		set, generation := d.current.Load(), d.connector.generation.Load()
		err := work(ctx)
		if readOnly(err) {
			d.connector.discard(generation)
		}
		if err == nil || ctx.Err() != nil || !d.worthAnother(ctx, set, err, attempt, time.Since(begun)) {
			return err
		}
		rest := pause(attempt)
		if errors.Is(err, ErrContended) {
			rest = pause(min(attempt, contendedPauses))
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return translate(ctx, ctx.Err())
		}
	}
}

// worthAnother reports whether work that failed with err may succeed when it is repeated.
func (d *DB) worthAnother(ctx context.Context, set *prepared, err error, attempt int, took time.Duration) bool {
	switch {
	case errors.Is(err, ErrCommitUnknown):
		return false
	case errors.Is(err, ErrContended):
		return took < maxContention
	case attempt >= maxAttempts:
		return false
	case rolledBack(err):
		return true
	case disconnected(err):
		return took < maxOutage
	}
	return stalePlan(err) && d.prepare(ctx, set) == nil
}

// pause doubles from 4 ms to maxPause and is randomised over half of that, so that competitors do not collide again.
func pause(attempt int) time.Duration {
	longest := min(maxPause, 2*time.Millisecond<<min(attempt, 10))
	return longest/2 + rand.N(longest/2) //nolint:gosec // nobody gains by foretelling a pause
}
