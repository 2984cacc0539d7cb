package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Work that lost a race is tried up to maxRaces times, work that lost its connection up to maxOutages times: a restart that
// takes longer is the caller's to wait for.
const (
	maxRaces   = 12
	maxOutages = 6
	maxPause   = 250 * time.Millisecond
)

// again runs work until it succeeds or fails for a reason that another attempt would not change. Work leaves nothing
// behind when it fails.
func (s *Store) again(ctx context.Context, work func() error) error {
	for attempt := 1; ; attempt++ {
		set := s.current.Load()
		err := work()
		if err == nil || ctx.Err() != nil || attempt >= s.attempts(ctx, set, err) {
			return err
		}
		select {
		case <-time.After(pause(attempt)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// attempts is how often work that failed with err is worth trying.
func (s *Store) attempts(ctx context.Context, set *prepared, err error) int {
	switch {
	case errors.Is(err, ErrCommitUnknown):
		return 1
	case rolledBack(err):
		return maxRaces
	case disconnected(err):
		return maxOutages
	case stalePlan(err) && s.prepare(ctx, set) == nil:
		return maxOutages
	}
	return 1
}

// pause doubles from 4 ms to maxPause and is spread over half of that, so that those who raced do not meet again.
func pause(attempt int) time.Duration {
	longest := min(maxPause, 2*time.Millisecond<<min(attempt, 10))
	return longest/2 + rand.N(longest/2)
}
