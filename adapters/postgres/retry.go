package postgres

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

// again runs work until it succeeds, or fails for a reason that another attempt would not change. Failed work must leave
// nothing behind.
func (s *Store) again(ctx context.Context, work func() error) error {
	begun := time.Now()
	for attempt := 1; ; attempt++ {
		set := s.current.Load()
		err := work()
		if err == nil || ctx.Err() != nil || attempt == maxAttempts || !s.worthAnother(ctx, set, err, time.Since(begun)) {
			return err
		}
		select {
		case <-time.After(pause(attempt)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// worthAnother reports whether work that failed with err may succeed when it is repeated.
func (s *Store) worthAnother(ctx context.Context, set *prepared, err error, took time.Duration) bool {
	switch {
	case errors.Is(err, ErrCommitUnknown):
		return false
	case rolledBack(err):
		return true
	case disconnected(err):
		return took < maxOutage
	}
	return stalePlan(err) && s.prepare(ctx, set) == nil
}

// pause doubles from 4 ms to maxPause and is randomised over half of that, so that competitors do not collide again.
func pause(attempt int) time.Duration {
	longest := min(maxPause, 2*time.Millisecond<<min(attempt, 10))
	return longest/2 + rand.N(longest/2) //nolint:gosec // nobody gains by foretelling a pause
}
