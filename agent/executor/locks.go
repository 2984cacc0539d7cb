package executor

import (
	"context"
	"sync"
)

// locks serializes work by name, and lets work on different names run in parallel.
type locks struct {
	mu   sync.Mutex
	held map[string]*slot
}

type slot struct {
	free  chan struct{} // holds one token while nobody has the lock
	users int           // holders and waiters
}

// take waits for the lock of a name; the returned function gives it back.
func (l *locks) take(ctx context.Context, name string) (func(), error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = make(map[string]*slot)
	}
	s := l.held[name]
	if s == nil {
		s = &slot{free: make(chan struct{}, 1)}
		s.free <- struct{}{}
		l.held[name] = s
	}
	s.users++
	l.mu.Unlock()
	select {
	case <-s.free:
		return func() { s.free <- struct{}{}; l.leave(name, s) }, nil
	case <-ctx.Done():
		l.leave(name, s)
		return nil, ctx.Err()
	}
}

func (l *locks) leave(name string, s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.held, name)
	}
}
