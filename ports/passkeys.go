package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
)

// PasskeyVerifier speaks WebAuthn with browsers. Options and responses are JSON as a browser takes and makes it; state and record
// are opaque. A user is always verified by the device. It asks nobody over the network.
type PasskeyVerifier interface {
	// BeginRegistration returns what the browser is asked, and what FinishRegistration needs. The passkeys that the owner has are
	// excluded.
	BeginRegistration(o PasskeyOwner) (options, state []byte, err error)
	// FinishRegistration returns how the device names the new passkey, and its record. UNAUTHORIZED: the response is not accepted.
	FinishRegistration(o PasskeyOwner, state, response []byte) (credential, record []byte, err error)
	// BeginLogIn returns what the browser is asked, and what FinishLogIn needs. Any passkey may answer.
	BeginLogIn() (options, state []byte, err error)
	// FinishLogIn asks find for the owner of a passkey, checks the response and returns the passkey's new record. UNAUTHORIZED: the
	// response is not accepted. It returns the error of find as it is.
	FinishLogIn(state, response []byte, find func(credential []byte) (PasskeyOwner, error)) (credential, record []byte, err error)
}

// PasskeyOwner is a person as devices know them, with the records of the passkeys.
type PasskeyOwner struct {
	Handle      []byte
	Email, Name string
	Records     [][]byte
}

// NoPasskeys is for an installation without passkeys.
type NoPasskeys struct{}

func errNoPasskeys() error {
	return fault.New(fault.FeatureNotAvailable, "this installation has no passkeys")
}

// BeginRegistration refuses with FEATURE_NOT_AVAILABLE.
func (NoPasskeys) BeginRegistration(PasskeyOwner) (options, state []byte, err error) {
	return nil, nil, errNoPasskeys()
}

// FinishRegistration refuses with FEATURE_NOT_AVAILABLE.
func (NoPasskeys) FinishRegistration(PasskeyOwner, []byte, []byte) (credential, record []byte, err error) {
	return nil, nil, errNoPasskeys()
}

// BeginLogIn refuses with FEATURE_NOT_AVAILABLE.
func (NoPasskeys) BeginLogIn() (options, state []byte, err error) { return nil, nil, errNoPasskeys() }

// FinishLogIn refuses with FEATURE_NOT_AVAILABLE.
func (NoPasskeys) FinishLogIn(
	[]byte, []byte, func([]byte) (PasskeyOwner, error),
) (credential, record []byte, err error) {
	return nil, nil, errNoPasskeys()
}

// Passkeys keeps the passkeys of people, and what is remembered of answered challenges. Who adds or removes a passkey holds the
// person's lock.
type Passkeys interface {
	// Add stores a passkey. ErrNoRow where there is no such user. VALIDATION_ERROR on "passkey" where its credential is known.
	Add(ctx context.Context, p person.Passkey) error
	// Of returns the passkeys of a person, the oldest first.
	Of(ctx context.Context, user id.UserID) ([]person.Passkey, error)
	// ByCredential returns the passkey that a device names so; ErrNoRow when there is none.
	ByCredential(ctx context.Context, credential []byte) (person.Passkey, error)
	// Save writes record and last use. ErrNoRow when there is no such passkey.
	Save(ctx context.Context, p person.Passkey) error
	// Remove deletes a passkey of a person; ErrNoRow when there is none.
	Remove(ctx context.Context, user id.UserID, passkey id.PasskeyID) error
	// Spend remembers a challenge until a time; false where it is remembered already. Of two who spend it at the same time, one
	// gets true.
	Spend(ctx context.Context, challenge token.Hash, until time.Time) (bool, error)
	// Forget deletes up to limit challenges that are remembered until before a time.
	Forget(ctx context.Context, before time.Time, limit int) error
}
