package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
)

// Sessions keeps who is logged in. Each token is stored as a hash.
type Sessions interface {
	// Add stores a session. ErrNoRow where there is no such user.
	Add(ctx context.Context, s person.Session) error
	// ByToken returns the session with a token, whatever its status, and what is needed to serve it; ErrNoRow when there is none,
	// or its person owns no account.
	ByToken(ctx context.Context, hash token.Hash) (SessionEntry, error)
	// Get returns a session, whatever its status; ErrNoRow when there is none.
	Get(ctx context.Context, s id.SessionID) (person.Session, error)
	// Lock is Get, and locks the session until the transaction ends. Writing a session that was read before needs the lock.
	Lock(ctx context.Context, s id.SessionID) (person.Session, error)
	// Of returns the sessions of a person that are not stored as ended, the one that was used last first.
	Of(ctx context.Context, user id.UserID) ([]person.Session, error)
	// Save writes every field that can change: token, status, tries, use, proof and end. ErrNoRow when there is no such session.
	Save(ctx context.Context, s person.Session) error
	// Touch stores when a session was used; an older time than the stored one changes nothing.
	Touch(ctx context.Context, s id.SessionID, at time.Time) error
	// EndAll ends the sessions of a person but one, which may be empty.
	EndAll(ctx context.Context, user id.UserID, but id.SessionID, now time.Time) error
	// Forget deletes up to limit sessions that are over: that ended before a time, or began more than person.Life before it.
	Forget(ctx context.Context, before time.Time, limit int) error
}

// SessionEntry is a session with its person, whose password and last log-in are left out, and the account that the person owns.
type SessionEntry struct {
	Session     person.Session
	User        account.User
	Account     account.Account
	Maintenance bool
	Operator    bool // the person is named as an operator
	Passkey     bool // the person has one
}

// Credentials keeps what people log in with. Writers must hold the person's lock.
type Credentials interface {
	// Lock returns a user with the password's hash, and locks the user until the transaction ends; ErrNoRow when there is none.
	Lock(ctx context.Context, user id.UserID) (account.User, error)
	// SetPassword stores the hash of a password. ErrNoRow when there is no such user.
	SetPassword(ctx context.Context, user id.UserID, hash string) error
	// SetLoggedIn stores when a person logged in. ErrNoRow when there is no such user.
	SetLoggedIn(ctx context.Context, user id.UserID, at time.Time) error
	// SetReset stores a link to choose another password, in place of the one that the person has. ErrNoRow where there is no such
	// user.
	SetReset(ctx context.Context, r person.Reset) error
	// ResetByToken returns the link with a token, also one that is too old; ErrNoRow when there is none.
	ResetByToken(ctx context.Context, hash token.Hash) (person.Reset, error)
	// RemoveReset deletes the link of a person.
	RemoveReset(ctx context.Context, user id.UserID) error
	// Factor returns the second factor of a person; ErrNoRow when there is none.
	Factor(ctx context.Context, user id.UserID) (person.Factor, error)
	// SetFactor stores a factor, in place of another one of the person. ErrNoRow where there is no such user.
	SetFactor(ctx context.Context, f person.Factor) error
	// SaveFactor writes every field that can change: the last step, and the confirmation. ErrNoRow when the person has none.
	SaveFactor(ctx context.Context, f person.Factor) error
	// RemoveFactor deletes the factor and the recovery codes of a person.
	RemoveFactor(ctx context.Context, user id.UserID) error
	// SetRecovery stores the hashes of recovery codes in place of those that the person has. ErrNoRow where there is no such user.
	SetRecovery(ctx context.Context, user id.UserID, codes []token.Hash) error
	// Recovery returns how many recovery codes a person has left.
	Recovery(ctx context.Context, user id.UserID) (int, error)
	// UseRecovery deletes a recovery code; ErrNoRow where the person has no such code.
	UseRecovery(ctx context.Context, user id.UserID, code token.Hash) error
}
