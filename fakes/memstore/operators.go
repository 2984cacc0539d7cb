package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

type operators struct{ session }

func (o operators) Add(ctx context.Context, user id.UserID, at time.Time) (bool, error) {
	return write(ctx, o.session, func(s *state) (bool, error) {
		if _, known := s.users.get(user); !known {
			return false, o.refuse(ports.ErrNoRow)
		}
		_, named := s.operators.get(user)
		if !named {
			s.operators.put(s.txid, user, at)
		}
		return !named, nil
	})
}

func (o operators) Remove(ctx context.Context, user id.UserID) error {
	return o.write(ctx, func(s *state) error {
		if _, named := s.operators.get(user); !named {
			return ports.ErrNoRow
		}
		s.operators.delete(s.txid, user)
		return nil
	})
}

func (o operators) List(ctx context.Context) ([]ports.OperatorEntry, error) {
	return read(ctx, o.session, func(s *state) (list []ports.OperatorEntry, _ error) {
		for of, since := range s.operators.byKey {
			u, _ := s.users.get(of)
			list = append(list, ports.OperatorEntry{
				UserID: of, Email: u.Email, Name: u.Name, AddedAt: since, Passkeys: s.keysOf(of),
			})
		}
		slices.SortFunc(list, func(a, b ports.OperatorEntry) int {
			return byTime(a.AddedAt, string(a.UserID), b.AddedAt, string(b.UserID))
		})
		return list, nil
	})
}

// keysOf is how many passkeys a person has.
func (s *state) keysOf(user id.UserID) int {
	return len(s.passkeys.having(func(k person.Passkey) bool { return k.UserID == user }, nil))
}
