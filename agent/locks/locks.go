// Package locks has locks that are named by what they guard.
package locks

import (
	"context"
	"sync"
)

// Locks serializes work by name, and lets work on different names run in parallel. Its zero value is ready. It remembers a name
// only while somebody has its lock or waits for it.
type Locks struct {
	mu    sync.Mutex
	slots map[string]*slot
}

type slot struct {
	free  chan struct{} // holds one token while nobody has the lock
	users int           // holders and waiters
}

// Take waits for the lock of a name; the returned function gives it back.
func (l *Locks) Take(ctx context.Context, name string) (release func(), err error) {
	s := l.enter(name)
	select {
	case <-s.free:
		return l.release(name, s), nil
	case <-ctx.Done():
		l.leave(name, s)
		return nil, ctx.Err()
	}
}

// Try is Take for who does not wait: it returns nil where somebody else has the lock.
func (l *Locks) Try(name string) (release func()) {
	s := l.enter(name)
	select {
	case <-s.free:
		return l.release(name, s)
	default:
		l.leave(name, s)
		return nil
	}
}

func (l *Locks) enter(name string) *slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots == nil {
		l.slots = make(map[string]*slot)
	}
	s := l.slots[name]
	if s == nil {
		s = &slot{free: make(chan struct{}, 1)}
		s.free <- struct{}{}
		l.slots[name] = s
	}
	s.users++
	return s
}

func (l *Locks) release(name string, s *slot) func() {
	return func() {
		s.free <- struct{}{}
		l.leave(name, s)
	}
}

func (l *Locks) leave(name string, s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.slots, name)
	}
}
