package memstore

import (
	"sync"

	"github.com/pgherd/pgherd/ports"
)

// Wake implements ports.Notifier: it wakes for operations.
func (s *Store) Wake() (<-chan struct{}, func()) { return s.workers.Wake() }

// Dispatchers wakes for events and deliveries of webhooks.
func (s *Store) Dispatchers() ports.Notifier { return &s.dispatchers }

// sleepers are those who wait for one kind of work.
type sleepers struct {
	mu      sync.Mutex
	waiting map[chan struct{}]struct{}
}

// Wake implements ports.Notifier.
func (s *sleepers) Wake() (<-chan struct{}, func()) {
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

func (s *sleepers) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.waiting {
		select {
		case c <- struct{}{}:
		default: // one that was not taken yet is enough
		}
	}
}
