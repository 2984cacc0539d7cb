package memstore

import (
	"cmp"
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/ports"
)

type forwardKey struct {
	database id.DatabaseID
	server   id.ServerID
}

type forwards struct{ session }

func byForwardServer(a, b move.Forward) int { return cmp.Compare(a.ServerID, b.ServerID) }

func (r forwards) Put(ctx context.Context, f move.Forward) error {
	return r.write(ctx, func(s *state) error {
		_, known := s.servers.get(f.ServerID)
		if _, ok := s.databases.get(f.DatabaseID); !ok || !known {
			return r.refuse(ports.ErrReferenced)
		}
		s.forwards.put(s.txid, forwardKey{f.DatabaseID, f.ServerID}, f)
		return nil
	})
}

func (r forwards) Of(ctx context.Context, db id.DatabaseID) ([]move.Forward, error) {
	return read(ctx, r.session, func(s *state) ([]move.Forward, error) {
		return s.forwards.having(func(f move.Forward) bool { return f.DatabaseID == db }, byForwardServer), nil
	})
}

func (r forwards) Named(ctx context.Context, on id.ServerID, name string) ([]move.Forward, error) {
	return read(ctx, r.session, func(s *state) ([]move.Forward, error) {
		return s.forwards.having(func(f move.Forward) bool {
			of, _ := s.databases.get(f.DatabaseID)
			return f.ServerID == on && of.Name == name
		}, func(a, b move.Forward) int { return cmp.Compare(a.DatabaseID, b.DatabaseID) }), nil
	})
}

func (r forwards) List(ctx context.Context) ([]move.Forward, error) {
	return read(ctx, r.session, func(s *state) ([]move.Forward, error) {
		return s.forwards.having(every, func(a, b move.Forward) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.DatabaseID, b.DatabaseID), byForwardServer(a, b))
		}), nil
	})
}

func (r forwards) Due(ctx context.Context, now time.Time) ([]move.Forward, error) {
	return read(ctx, r.session, func(s *state) ([]move.Forward, error) {
		return s.forwards.having(func(f move.Forward) bool { return !f.NextAt.After(now) }, func(a, b move.Forward) int {
			return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.DatabaseID, b.DatabaseID), byForwardServer(a, b))
		}), nil
	})
}

func (r forwards) Remove(ctx context.Context, db id.DatabaseID, server id.ServerID) error {
	return r.write(ctx, func(s *state) error {
		key := forwardKey{db, server}
		if _, ok := s.forwards.get(key); !ok {
			return r.refuse(ports.ErrNoRow)
		}
		s.forwards.delete(s.txid, key)
		return nil
	})
}
