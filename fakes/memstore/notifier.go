package memstore

import "github.com/pgherd/pgherd/ports"

// Wake implements ports.Notifier: it wakes for operations.
func (s *Store) Wake() (<-chan struct{}, func()) { return s.workers.Wake() }

// Dispatchers wakes for events and deliveries of webhooks, and for mails.
func (s *Store) Dispatchers() ports.Notifier { return &s.dispatchers }
