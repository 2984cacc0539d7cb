package person

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/token"
)

const (
	// MaxPasskeys is how many a person has.
	MaxPasskeys = 20
	// CeremonyTime is how long a device has to answer.
	CeremonyTime = 5 * time.Minute
	// HandleBytes is the length of the random name by which devices know a person.
	HandleBytes = 32
)

// Passkey is a key pair of which a person's device holds the private key, and asks for a finger, a face or a PIN before it signs.
// It is both factors at once.
type Passkey struct {
	ID         id.PasskeyID `db:"id"`
	UserID     id.UserID    `db:"user_id"`
	Handle     []byte       `db:"handle"`     // of the person, the same for all passkeys
	Credential []byte       `db:"credential"` // how the device names it
	Record     []byte       `db:"record"`     // as the verifier made it
	Name       string       `db:"name"`       // what the person calls it
	CreatedAt  time.Time    `db:"created_at"`
	UsedAt     *time.Time   `db:"used_at"`
}

// AdmitPasskey returns VALIDATION_ERROR on "passkey" where a person who has so many may not have another one.
func AdmitPasskey(has int) error {
	if has >= MaxPasskeys {
		return fault.Invalid("passkey", "there are %d already: remove one first", MaxPasskeys)
	}
	return nil
}

// MayRemovePasskey returns VALIDATION_ERROR on "passkey" for one that the person does not have, or that is the last way to log
// in.
func MayRemovePasskey(list []Passkey, passkey id.PasskeyID, hasPassword bool) error {
	if !slices.ContainsFunc(list, func(p Passkey) bool { return p.ID == passkey }) {
		return fault.Invalid("passkey", "does not exist")
	}
	if len(list) == 1 && !hasPassword {
		return fault.Invalid("passkey", "is the only way to log in: add another one, or choose a password, before")
	}
	return nil
}

// Ceremony is a challenge that a device is to sign. It works once.
type Ceremony struct {
	TokenHash []byte       `db:"token_hash"`
	SessionID id.SessionID `db:"session_id"` // in which it was asked for; empty for a log-in
	Handle    []byte       `db:"handle"`     // of who registers; empty otherwise
	State     []byte       `db:"state"`      // as the verifier made it
	ExpiresAt time.Time    `db:"expires_at"`
}

// Asked is a new ceremony.
func Asked(hash token.Hash, in id.SessionID, handle, state []byte, now time.Time) Ceremony {
	return Ceremony{TokenHash: hash[:], SessionID: in, Handle: handle, State: state, ExpiresAt: now.Add(CeremonyTime)}
}

// Answers returns UNAUTHORIZED where the ceremony is too old, or was asked for in another session.
func (c Ceremony) Answers(in id.SessionID, now time.Time) error {
	if c.SessionID != in || !now.Before(c.ExpiresAt) {
		return ErrPasskey()
	}
	return nil
}
