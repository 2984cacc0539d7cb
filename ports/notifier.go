package ports

import "sync"

// Notifier wakes workers. Spurious and missed wake-ups are possible, so a waiting worker must also poll.
type Notifier interface {
	// Wake returns a channel that receives after work was committed to the queue. Each call returns a new channel; stop releases
	// it.
	Wake() (c <-chan struct{}, stop func())
}

// Sleepers implements Notifier for adapters that learn only that there is work, not for whom: it wakes everybody who waits for
// one kind of work. The zero value is ready to use. It is safe for concurrent use.
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
		default: // the channel already holds a wake-up
		}
	}
}
