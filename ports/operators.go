package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Operators keeps who may use the operator's console.
type Operators interface {
	// Add names a person; false where that one is named already, which stays as it was. ErrNoRow where there is no such user.
	Add(ctx context.Context, user id.UserID, at time.Time) (bool, error)
	// Remove takes that back. ErrNoRow where the person is not named.
	Remove(ctx context.Context, user id.UserID) error
	// List returns all, the one that was named first before the others.
	List(ctx context.Context) ([]OperatorEntry, error)
}

// OperatorEntry is a person who is named as an operator.
type OperatorEntry struct {
	UserID   id.UserID `db:"user_id"`
	Email    string    `db:"email"`
	Name     string    `db:"name"`
	AddedAt  time.Time `db:"added_at"`
	Passkeys int       `db:"passkeys"` // without one, the person cannot use the console
}
