package memstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

type logins struct{ session }

func (l logins) Add(ctx context.Context, secret ports.LoginSecret) error {
	return l.write(ctx, func(s *state) error {
		key := loginKey{secret.DatabaseID, secret.Login}
		if _, ok := s.databases.get(secret.DatabaseID); !ok {
			return l.refuse(ports.ErrNoRow)
		}
		if _, taken := s.logins.get(key); taken {
			return l.refuse(errors.New("the database has this login already"))
		}
		s.logins.put(s.txid, key, ownLogin(secret))
		return nil
	})
}

func (l logins) Get(ctx context.Context, db id.DatabaseID, login database.Login) (ports.LoginSecret, error) {
	return read(ctx, l.session, func(s *state) (ports.LoginSecret, error) {
		stored, ok := s.logins.get(loginKey{db, login})
		return found(ownLogin(stored), ok)
	})
}

func (l logins) List(ctx context.Context, db id.DatabaseID) ([]ports.LoginSecret, error) {
	return read(ctx, l.session, func(s *state) ([]ports.LoginSecret, error) {
		order := database.Managed.Logins()
		list := s.logins.having(func(secret ports.LoginSecret) bool { return secret.DatabaseID == db },
			func(a, b ports.LoginSecret) int {
				return cmp.Compare(slices.Index(order, a.Login), slices.Index(order, b.Login))
			})
		return each(list, ownLogin), nil
	})
}

// ownLogin returns a login whose secret its holder may change.
func ownLogin(l ports.LoginSecret) ports.LoginSecret {
	l.Sealed = bytes.Clone(l.Sealed)
	return l
}

func (l logins) Replace(ctx context.Context, secret ports.LoginSecret) error {
	return l.write(ctx, func(s *state) error {
		key := loginKey{secret.DatabaseID, secret.Login}
		stored, ok := s.logins.get(key)
		if !ok {
			return ports.ErrNoRow
		}
		stored.Generation, stored.Verifier, stored.Sealed = secret.Generation, secret.Verifier, bytes.Clone(secret.Sealed)
		s.logins.put(s.txid, key, stored)
		return nil
	})
}
