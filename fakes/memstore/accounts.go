package memstore

import (
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

type accounts struct{ session }

func (a accounts) AddUser(ctx context.Context, u account.User) error {
	return a.write(ctx, func(s *state) error {
		if s.users.any(func(known account.User) bool { return known.Email == u.Email }) {
			return a.refuse(fault.Invalid("email", "is in use"))
		}
		s.users.put(s.txid, u.ID, u)
		return nil
	})
}

func (a accounts) Users(ctx context.Context, users []id.UserID) ([]account.User, error) {
	return read(ctx, a.session, func(s *state) ([]account.User, error) {
		return s.users.having(func(u account.User) bool { return slices.Contains(users, u.ID) }, nil), nil
	})
}

func (a accounts) Add(ctx context.Context, row account.Account) error {
	return a.write(ctx, func(s *state) error {
		if _, ok := s.users.get(row.OwnerID); !ok {
			return a.refuse(ports.ErrNoRow)
		}
		if s.accounts.any(func(other account.Account) bool { return other.OwnerID == row.OwnerID }) {
			return a.refuse(fault.Invalid("owner", "owns an account already"))
		}
		s.accounts.put(s.txid, row.ID, row)
		return nil
	})
}

func (a accounts) Get(ctx context.Context, of id.AccountID) (account.Account, error) {
	return read(ctx, a.session, func(s *state) (account.Account, error) { return found(s.accounts.get(of)) })
}

func (a accounts) OfOwner(ctx context.Context, user id.UserID) (account.Account, error) {
	return read(ctx, a.session, func(s *state) (account.Account, error) { return s.owned(user) })
}

// owned is the account of an owner.
func (s *state) owned(by id.UserID) (account.Account, error) {
	list := s.accounts.having(func(a account.Account) bool { return a.OwnerID == by }, nil)
	if len(list) == 0 {
		return account.Account{}, ports.ErrNoRow
	}
	return list[0], nil
}

func (a accounts) LockForQuota(ctx context.Context, of id.AccountID) (account.Account, error) {
	if a.tx == nil {
		return account.Account{}, ports.ErrReadOnly
	}
	return a.Get(ctx, of)
}

func (a accounts) Save(ctx context.Context, row account.Account) error {
	return a.write(ctx, func(s *state) error {
		stored, ok := s.accounts.get(row.ID)
		if !ok {
			return ports.ErrNoRow
		}
		stored.Plan, stored.Overrides, stored.Suspension = row.Plan, row.Overrides, row.Suspension
		s.accounts.put(s.txid, row.ID, stored)
		return nil
	})
}

func (a accounts) User(ctx context.Context, user id.UserID) (account.User, error) {
	return read(ctx, a.session, func(s *state) (account.User, error) { return found(s.users.get(user)) })
}

func (a accounts) UserByEmail(ctx context.Context, email string) (account.User, error) {
	return read(ctx, a.session, func(s *state) (account.User, error) {
		list := s.users.having(func(u account.User) bool { return u.Email == email }, nil)
		if len(list) == 0 {
			return account.User{}, ports.ErrNoRow
		}
		return list[0], nil
	})
}

// found turns a missing row into ErrNoRow.
func found[V any](v V, ok bool) (V, error) {
	if !ok {
		var none V
		return none, ports.ErrNoRow
	}
	return v, nil
}
