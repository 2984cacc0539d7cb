package memstore

import (
	"bytes"
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

type webhooks struct{ session }

func (w webhooks) Add(ctx context.Context, e webhook.Endpoint) error {
	return w.write(ctx, func(s *state) error {
		if _, taken := s.webhooks.get(e.ID); taken {
			return w.refuse(errors.New("an endpoint of that ID exists"))
		}
		if _, ok := s.accounts.get(e.AccountID); !ok {
			return w.refuse(ports.ErrNoRow)
		}
		e.SealedSecret = bytes.Clone(e.SealedSecret)
		s.webhooks.put(s.txid, e.ID, e)
		return nil
	})
}

func (w webhooks) Get(ctx context.Context, account id.AccountID, of id.WebhookID) (webhook.Endpoint, error) {
	return read(ctx, w.session, func(s *state) (webhook.Endpoint, error) {
		stored, ok := s.webhooks.get(of)
		return found(stored, ok && stored.AccountID == account)
	})
}

func (w webhooks) Lock(ctx context.Context, of id.WebhookID) (webhook.Endpoint, error) {
	return write(ctx, w.session, func(s *state) (webhook.Endpoint, error) { return found(s.webhooks.get(of)) })
}

func (w webhooks) List(ctx context.Context, account id.AccountID, p ports.Page) ([]webhook.Endpoint, error) {
	return read(ctx, w.session, func(s *state) ([]webhook.Endpoint, error) {
		list := s.endpoints(func(e webhook.Endpoint) bool { return e.AccountID == account })
		position := func(e webhook.Endpoint) ports.Position { return ports.Position{At: e.CreatedAt, ID: string(e.ID)} }
		return pagedByID(list, p, position, 1)
	})
}

// endpoints are the matching ones, oldest first.
func (s *state) endpoints(match func(webhook.Endpoint) bool) []webhook.Endpoint {
	return s.webhooks.having(match, func(a, b webhook.Endpoint) int {
		return byTime(a.CreatedAt, string(a.ID), b.CreatedAt, string(b.ID))
	})
}

func (w webhooks) LockEnabled(ctx context.Context, account id.AccountID) (int, error) {
	return write(ctx, w.session, func(s *state) (int, error) {
		if _, ok := s.accounts.get(account); !ok {
			return 0, ports.ErrNoRow
		}
		return len(s.endpoints(func(e webhook.Endpoint) bool {
			return e.AccountID == account && e.Status() == webhook.Enabled
		})), nil
	})
}

func (w webhooks) Wanting(ctx context.Context, account id.AccountID, db id.DatabaseID) ([]webhook.Endpoint, error) {
	return read(ctx, w.session, func(s *state) ([]webhook.Endpoint, error) {
		return s.endpoints(func(e webhook.Endpoint) bool { return e.Wants(account, db) }), nil
	})
}

func (w webhooks) Save(ctx context.Context, e webhook.Endpoint) error {
	return w.write(ctx, func(s *state) error {
		stored, ok := s.webhooks.get(e.ID)
		if !ok {
			return ports.ErrNoRow
		}
		stored.SealedSecret, stored.ConsecutiveFailures = bytes.Clone(e.SealedSecret), e.ConsecutiveFailures
		stored.DisabledAt, stored.UpdatedAt = e.DisabledAt, e.UpdatedAt
		s.webhooks.put(s.txid, e.ID, stored)
		return nil
	})
}
