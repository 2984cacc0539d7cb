package memstore

// Wake implements ports.Notifier.
func (s *Store) Wake() (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[c] = struct{}{}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, c)
	}
}

func (s *Store) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.waiting {
		select {
		case c <- struct{}{}:
		default: // one that was not taken yet is enough
		}
	}
}
