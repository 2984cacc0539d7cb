package base

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// By is something with the person who did it, without the hash of the password; nil if no person is known.
type By[T any] struct {
	What   T
	Person *account.User
}

// WithPersons adds the person to each entry of a list. Only IDs are stored; names are looked up when they are shown.
func WithPersons[T any](ctx context.Context, tx ports.Tx, list []T, by func(T) id.UserID) ([]By[T], error) {
	asked := map[id.UserID]*account.User{}
	var ids []id.UserID
	for _, what := range list {
		user := by(what)
		if _, known := asked[user]; !known && user != "" {
			asked[user] = nil
			ids = append(ids, user)
		}
	}
	if len(ids) > 0 {
		users, err := tx.Accounts().Users(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, u := range users {
			u.PasswordHash = ""
			asked[u.ID] = &u
		}
	}
	with := make([]By[T], len(list))
	for i, what := range list {
		with[i] = By[T]{what, asked[by(what)]}
	}
	return with, nil
}
