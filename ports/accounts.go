package ports

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
)

// Accounts keeps people and accounts.
type Accounts interface {
	// AddUser stores a user. Its address is as account.ValidateEmail returns it, as everywhere in the store; one that
	// is in use already is VALIDATION_ERROR on "email".
	AddUser(ctx context.Context, u account.User) error
	// Users returns the users with the given IDs, in any order. One that does not exist is left out.
	Users(ctx context.Context, users []id.UserID) ([]account.User, error)
	// Add stores an account of an existing user, who owns no other.
	Add(ctx context.Context, a account.Account) error
	// Get returns an account; ErrNoRow when there is none.
	Get(ctx context.Context, account id.AccountID) (account.Account, error)
	// OfOwner returns the account that a user owns; ErrNoRow when there is none.
	OfOwner(ctx context.Context, user id.UserID) (account.Account, error)
	// LockForQuota returns the account and locks it until the transaction ends, so that counting and adding are atomic. Who locks
	// databases of the account too has locked them before.
	LockForQuota(ctx context.Context, account id.AccountID) (account.Account, error)
	// Save writes plan, overrides and suspension.
	Save(ctx context.Context, a account.Account) error
	// User returns a user; ErrNoRow when there is none.
	User(ctx context.Context, user id.UserID) (account.User, error)
	// UserByEmail returns the user with an address; ErrNoRow when there is none.
	UserByEmail(ctx context.Context, email string) (account.User, error)
}

// Keys keeps API keys: hashes and visible prefixes, never secrets.
type Keys interface {
	// Add stores a key and, for a selected-database key, the databases that it reaches.
	Add(ctx context.Context, k account.Key, databases []id.DatabaseID) error
	// Get returns a key; ErrNoRow when there is none.
	Get(ctx context.Context, key id.KeyID) (account.Key, error)
	// Lock is Get, and locks the key until the transaction ends. Writing a key that was read before needs the lock.
	Lock(ctx context.Context, key id.KeyID) (account.Key, error)
	// List returns the keys of an account, newest first.
	List(ctx context.Context, account id.AccountID) ([]account.Key, error)
	// Replace stores the new ID and hash of a key in place of the old ones; the old text stops working at once.
	Replace(ctx context.Context, old id.KeyID, k account.Key) error
	// Bind stores ExpiresAt and Networks.
	Bind(ctx context.Context, k account.Key) error
	// Revoke stores RevokedAt.
	Revoke(ctx context.Context, k account.Key) error
}
