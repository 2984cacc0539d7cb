package memstore

import (
	"cmp"
	"context"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/ports"
)

type rehearsalKey struct {
	database id.DatabaseID
	version  int
}

type rehearsals struct{ session }

func (r rehearsals) Put(ctx context.Context, one rehearsal.Rehearsal) error {
	return r.write(ctx, func(s *state) error {
		_, known := s.servers.get(one.ServerID)
		if _, ok := s.databases.get(one.DatabaseID); !ok || !known {
			return r.refuse(ports.ErrNoRow)
		}
		s.rehearsals.put(s.txid, rehearsalKey{one.DatabaseID, one.PostgresVersion}, one)
		return nil
	})
}

func (r rehearsals) Last(ctx context.Context, db id.DatabaseID, version int) (rehearsal.Rehearsal, error) {
	return read(ctx, r.session, func(s *state) (rehearsal.Rehearsal, error) {
		one, ok := s.rehearsals.get(rehearsalKey{db, version})
		if !ok {
			return one, ports.ErrNoRow
		}
		return one, nil
	})
}

func (r rehearsals) Of(ctx context.Context, db id.DatabaseID) ([]rehearsal.Rehearsal, error) {
	return read(ctx, r.session, func(s *state) ([]rehearsal.Rehearsal, error) {
		return s.rehearsals.having(func(r rehearsal.Rehearsal) bool { return r.DatabaseID == db },
			func(a, b rehearsal.Rehearsal) int { return cmp.Compare(a.PostgresVersion, b.PostgresVersion) }), nil
	})
}
