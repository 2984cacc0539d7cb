package loop

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Shared is a look that costs whoever is looked at. All who ask share one look at a time, and what it found, or its error, until
// the pause after it is over. Nobody asks: it does not look.
type Shared[T any] struct {
	every, limit time.Duration
	look         func(context.Context) (T, error)

	mu   sync.Mutex
	last *sharedLook[T]
}

type sharedLook[T any] struct {
	done  chan struct{} // closed when the look has ended; what follows is set by then
	value T
	err   error
	until time.Time
}

// NewShared makes a Shared that looks for at most limit, with a pause of every or more from the end of a look to the next.
func NewShared[T any](every, limit time.Duration, look func(context.Context) (T, error)) *Shared[T] {
	return &Shared[T]{every: every, limit: limit, look: look}
}

// Get returns what the newest look found. It waits for one that goes on, at most until ctx ends, which does not end the look.
func (s *Shared[T]) Get(ctx context.Context) (T, error) {
	newest := s.newest(ctx)
	select {
	case <-newest.done:
		return newest.value, newest.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("no answer in time: %w", ctx.Err())
	}
}

func (s *Shared[T]) newest(ctx context.Context) *sharedLook[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.last.holds() {
		return s.last
	}
	s.last = &sharedLook[T]{done: make(chan struct{})}
	go s.run(context.WithoutCancel(ctx), s.last)
	return s.last
}

// holds reports whether the look goes on, or what it found still counts.
func (l *sharedLook[T]) holds() bool {
	select {
	case <-l.done:
		return time.Now().Before(l.until)
	default:
		return true
	}
}

func (s *Shared[T]) run(ctx context.Context, l *sharedLook[T]) {
	defer close(l.done)
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	began := time.Now()
	l.value, l.err = s.look(ctx)
	l.until = time.Now().Add(pauseAfter(s.every, time.Since(began)))
}

// pauseAfter grows with what a look took, also one that was given up: the slower the answer, the more seldom it is asked for.
func pauseAfter(every, took time.Duration) time.Duration { return max(every, 10*took) }
