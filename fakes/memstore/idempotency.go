package memstore

import (
	"context"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/ports"
)

type requests struct{ session }

func (r requests) Claim(
	ctx context.Context, record idempotency.Record,
) (stored idempotency.Record, fresh bool, err error) {
	s, err := r.writing(ctx)
	if err != nil {
		return idempotency.Record{}, false, err
	}
	key := requestKey{record.AccountID, record.Route, record.Key}
	if stored, ok := s.requests.get(key); ok {
		return stored, false, nil
	}
	if _, ok := s.accounts.get(record.AccountID); !ok {
		return idempotency.Record{}, false, r.refuse(ports.ErrNoRow)
	}
	s.requests.put(s.txid, key, record)
	return record, true, nil
}

func (r requests) Get(
	ctx context.Context, of id.AccountID, route string, key idempotency.Key,
) (idempotency.Record, error) {
	return read(ctx, r.session, func(s *state) (idempotency.Record, error) {
		stored, ok := s.requests.get(requestKey{of, route, key})
		if !ok {
			return stored, ports.ErrNoRow
		}
		return stored, nil
	})
}
