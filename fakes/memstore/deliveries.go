package memstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

type deliveries struct{ session }

func (d deliveries) Add(ctx context.Context, ds []webhook.Delivery) error {
	return d.write(ctx, func(s *state) error {
		for _, row := range ds {
			if err := d.add(s, row); err != nil {
				return d.refuse(err)
			}
		}
		return nil
	})
}

func (d deliveries) add(s *state, row webhook.Delivery) error {
	if s.deliveries.any(func(other webhook.Delivery) bool {
		return other.EventID == row.EventID && other.WebhookID == row.WebhookID
	}) {
		return nil
	}
	_, ofAccount := s.accounts.get(row.AccountID)
	_, toEndpoint := s.webhooks.get(row.WebhookID)
	if !ofAccount || !toEndpoint {
		return ports.ErrNoRow
	}
	if _, taken := s.deliveries.get(row.ID); taken {
		return errors.New("a delivery of that ID exists")
	}
	row.Body = bytes.Clone(row.Body)
	s.deliveries.put(s.txid, row.ID, row)
	d.tx.announced = true
	return nil
}

func (d deliveries) Lock(ctx context.Context, of id.DeliveryID) (webhook.Delivery, error) {
	return write(ctx, d.session, func(s *state) (webhook.Delivery, error) { return found(s.deliveries.get(of)) })
}

func (d deliveries) SaveLeased(ctx context.Context, row webhook.Delivery, a *webhook.Attempt) error {
	return d.write(ctx, func(s *state) error {
		stored, ok := s.deliveries.get(row.ID)
		if !ok || stored.Epoch != row.Epoch {
			return ports.ErrLeaseLost
		}
		stored.Status, stored.Used, stored.Total, stored.FinishedAt = row.Status, row.Used, row.Total, row.FinishedAt
		stored.Lease = row.Lease
		s.deliveries.put(s.txid, row.ID, stored)
		d.tx.announced = d.tx.announced || row.Status == webhook.Pending && row.Used == 0
		if a == nil {
			return nil
		}
		key := attemptKey{a.DeliveryID, a.Number}
		if _, recorded := s.attempts.get(key); recorded {
			return d.refuse(errors.New("the attempt is recorded already"))
		}
		s.attempts.put(s.txid, key, ports.WebhookAttempt{Attempt: *a})
		return nil
	})
}

func (d deliveries) Abandon(ctx context.Context, w id.WebhookID, now time.Time) error {
	return d.write(ctx, func(s *state) error {
		for _, row := range s.deliveries.byKey {
			if row.WebhookID == w && row.Status == webhook.Pending {
				s.deliveries.put(s.txid, row.ID, row.Abandoned(now))
			}
		}
		return nil
	})
}

func (d deliveries) Attempts(ctx context.Context, w id.WebhookID, p ports.Page) ([]ports.WebhookAttempt, error) {
	return read(ctx, d.session, func(s *state) ([]ports.WebhookAttempt, error) {
		at := func(a ports.WebhookAttempt) bool { return s.deliveries.byKey[a.DeliveryID].WebhookID == w }
		list := s.attempts.having(at, func(a, b ports.WebhookAttempt) int {
			return cmp.Compare(b.Number, a.Number)
		})
		for i := range list {
			of := s.deliveries.byKey[list[i].DeliveryID]
			list[i].EventID, list[i].Event, list[i].Status = of.EventID, of.Event, of.Status
		}
		position := func(a ports.WebhookAttempt) ports.Position { return ports.Position{At: a.At, ID: string(a.DeliveryID)} }
		return pagedByID(list, p, position, -1)
	})
}

func (d deliveries) Backlog(ctx context.Context) (ports.Tally, error) {
	return read(ctx, d.session, func(s *state) (ports.Tally, error) {
		var b ports.Tally
		add := func(since time.Time) {
			b.Count++
			if b.Oldest == nil || since.Before(*b.Oldest) {
				b.Oldest = &since
			}
		}
		for _, row := range s.deliveries.byKey {
			if !row.Status.Final() && s.webhooks.byKey[row.WebhookID].Status() == webhook.Enabled {
				add(row.CreatedAt)
			}
		}
		for _, e := range s.waitingEvents() {
			add(e.CreatedAt)
		}
		return b, nil
	})
}

func (d deliveries) ClaimNext(
	ctx context.Context, owner string, now time.Time, hold time.Duration, perEndpoint int, except ...id.AccountID,
) (webhook.Delivery, error) {
	return write(ctx, d.session, func(s *state) (webhook.Delivery, error) {
		open := s.deliveries.having(func(row webhook.Delivery) bool {
			e := s.webhooks.byKey[row.WebhookID]
			return !row.Status.Final() && e.Status() == webhook.Enabled && !slices.Contains(except, e.AccountID)
		}, nil)
		next, err := fairest(open, perEndpoint, s.webhookLanes.byKey, func(d webhook.Delivery) waiting[id.WebhookID] {
			return waiting[id.WebhookID]{
				d.WebhookID, d.UnderLease(now), d.Claimable(now), dueSince(d.NotBefore, d.Until), d.CreatedAt, string(d.ID),
			}
		})
		if err != nil {
			return webhook.Delivery{}, err
		}
		claimed := next.Claimed(owner, now, hold)
		s.deliveries.put(s.txid, claimed.ID, claimed)
		s.turns++
		s.webhookLanes.put(s.txid, claimed.WebhookID, s.turns)
		return claimed, nil
	})
}
