package ports

import "sync"

// Notifier wakes workers. It may wake for nothing and it may miss: whoever waits on it also polls.
type Notifier interface {
	// Wake returns a channel that receives after work was committed to the queue. Each call makes a channel of its own;
	// stop releases it.
	Wake() (c <-chan struct{}, stop func())
}

// Sleepers are those who wait for one kind of work: a Notifier for adapters that learn of work as a whole. The zero value is
// ready, and is safe for concurrent use.
type Sleepers struct {
	mu      sync.Mutex
	waiting map[chan struct{}]struct{}
}

// Wake implements Notifier.
func (s *Sleepers) Wake() (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[chan struct{}]struct{}{}
	}
	s.waiting[c] = struct{}{}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, c)
	}
}

// WakeAll wakes everybody who waits. It never blocks.
func (s *Sleepers) WakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.waiting {
		select {
		case c <- struct{}{}:
		default: // one that was not taken yet is enough
		}
	}
}
