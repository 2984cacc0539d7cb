package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

type drains struct{ session }

func (r drains) Put(ctx context.Context, d move.Drain) error {
	return r.write(ctx, func(s *state) error {
		if _, known := s.servers.get(d.ServerID); !known {
			return r.refuse(ports.ErrReferenced)
		}
		s.drains.put(s.txid, d.ServerID, d)
		return nil
	})
}

func (r drains) Lock(ctx context.Context, of id.ServerID) (move.Drain, error) {
	return write(ctx, r.session, func(s *state) (move.Drain, error) { return found(s.drains.get(of)) })
}

func (r drains) List(ctx context.Context, open bool) ([]move.Drain, error) {
	return read(ctx, r.session, func(s *state) ([]move.Drain, error) {
		return s.drains.having(func(d move.Drain) bool { return !open || d.EndedAt == nil }, func(a, b move.Drain) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ServerID, b.ServerID))
		}), nil
	})
}

type drainItemKey struct {
	server   id.ServerID
	database id.DatabaseID
}

func (r drains) PutItem(ctx context.Context, i move.DrainItem) error {
	return r.write(ctx, func(s *state) error {
		if _, known := s.drains.get(i.ServerID); !known {
			return r.refuse(ports.ErrReferenced)
		}
		i.Failed = ""
		s.drainItems.put(s.txid, drainItemKey{i.ServerID, i.DatabaseID}, i)
		return nil
	})
}

func (r drains) Items(ctx context.Context, of id.ServerID) ([]move.DrainItem, error) {
	return read(ctx, r.session, func(s *state) ([]move.DrainItem, error) {
		items := s.drainItems.having(func(i move.DrainItem) bool { return i.ServerID == of }, func(a, b move.DrainItem) int {
			return cmp.Compare(a.DatabaseID, b.DatabaseID)
		})
		for at, i := range items {
			last, _ := s.operations.get(i.OperationID)
			items[at].Failed = last.ErrorText
		}
		return items, nil
	})
}

func (r drains) Moving(ctx context.Context, on id.ServerID) ([]id.DatabaseID, error) {
	return read(ctx, r.session, func(s *state) (list []id.DatabaseID, err error) {
		moves := func(o operation.Operation) bool { return o.Kind == move.Kind && !o.Status.Final() }
		for _, o := range s.operations.having(moves, nil) {
			if of, _ := s.databases.get(o.DatabaseID); of.ServerID == on {
				list = append(list, of.ID)
			}
		}
		slices.Sort(list)
		return list, nil
	})
}

func (r drains) Forget(ctx context.Context, of id.ServerID) error {
	return r.write(ctx, func(s *state) error {
		s.drainItems.remove(s.txid, func(k drainItemKey, _ move.DrainItem) bool { return k.server == of })
		return nil
	})
}
