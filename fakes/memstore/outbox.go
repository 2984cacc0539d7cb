package memstore

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

type outbox struct{ session }

func (o outbox) Add(ctx context.Context, e ports.OutboxEvent) error {
	return o.write(ctx, func(s *state) error {
		same := func(other ports.OutboxEvent) bool {
			return other.ID == e.ID || other.OperationID == e.OperationID && other.Name == e.Name
		}
		if s.events.any(same) {
			return o.refuse(errors.New("the operation has made this event already"))
		}
		e.Payload = bytes.Clone(e.Payload)
		s.events.put(s.txid, e.ID, e)
		o.tx.announced = true
		return nil
	})
}

func (o outbox) Forget(ctx context.Context, before time.Time, limit int) error {
	return o.write(ctx, func(s *state) error {
		ended := s.deliveries.having(func(d webhook.Delivery) bool {
			return d.Status.Final() && d.FinishedAt != nil && d.FinishedAt.Before(before)
		}, func(a, b webhook.Delivery) int { return a.FinishedAt.Compare(*b.FinishedAt) })
		for _, old := range ended[:min(limit, len(ended))] {
			s.attempts.remove(s.txid, func(k attemptKey, _ ports.WebhookAttempt) bool { return k.delivery == old.ID })
			s.deliveries.delete(s.txid, old.ID)
		}
		done := s.events.having(func(e ports.OutboxEvent) bool {
			_, taken := s.taken.get(e.ID)
			return taken && e.CreatedAt.Before(before) &&
				!s.deliveries.any(func(d webhook.Delivery) bool { return d.EventID == e.ID })
		}, byCreation)
		for _, old := range done[:min(limit, len(done))] {
			s.events.delete(s.txid, old.ID)
		}
		return nil
	})
}

func (d deliveries) TakeEvents(ctx context.Context, limit int) ([]ports.OutboxEvent, error) {
	return write(ctx, d.session, func(s *state) ([]ports.OutboxEvent, error) {
		waiting := s.waitingEvents()
		waiting = waiting[:min(limit, len(waiting))]
		for i, e := range waiting {
			s.taken.put(s.txid, e.ID, e.ID)
			waiting[i].Payload = bytes.Clone(e.Payload)
		}
		return waiting, nil
	})
}

// waitingEvents are the events that nobody has taken, oldest first.
func (s *state) waitingEvents() []ports.OutboxEvent {
	waits := func(e ports.OutboxEvent) bool { _, taken := s.taken.get(e.ID); return !taken }
	return s.events.having(waits, byCreation)
}

func byCreation(a, b ports.OutboxEvent) int {
	return byTime(a.CreatedAt, string(a.ID), b.CreatedAt, string(b.ID))
}
