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
func MayRemovePasskey(list []Passkey, passkey id.PasskeyID, hasOther bool) error {
	if !slices.ContainsFunc(list, func(p Passkey) bool { return p.ID == passkey }) {
		return fault.Invalid("passkey", "does not exist")
	}
	if len(list) == 1 && !hasOther {
		return fault.Invalid("passkey", "is the only way to log in: add another one, or choose a password, before")
	}
	return nil
}

// Purpose is what a ceremony is for.
type Purpose string

// The purposes.
const (
	ToLogIn    Purpose = "log-in"
	ToProve    Purpose = "proof"        // once more, in a session
	ToRegister Purpose = "registration" // of a passkey, in a session
)

// Context is what a sealed ceremony is bound to: it answers for nothing else, and in no other session. A log-in is in none.
func (p Purpose) Context(in id.SessionID) string { return "ceremony/" + string(p) + "/" + string(in) }

// Ceremony is a challenge that a device is to sign. It works once. Whoever asked keeps it, sealed: those who ask and never answer
// fill nothing.
type Ceremony struct {
	Handle    []byte    `json:"handle"` // of who registers; empty otherwise
	State     []byte    `json:"state"`  // as the verifier made it
	ExpiresAt time.Time `json:"expiresAt"`
}

// Asked is a new ceremony.
func Asked(handle, state []byte, now time.Time) Ceremony {
	return Ceremony{Handle: handle, State: state, ExpiresAt: now.Add(CeremonyTime)}
}

// Expired reports whether an answer comes too late.
func (c Ceremony) Expired(now time.Time) bool { return !now.Before(c.ExpiresAt) }

// Spent is what is remembered of a ceremony that was answered, and until when: for longer than a host whose clock is behind takes
// the answer.
func (c Ceremony) Spent() (mark token.Hash, until time.Time) {
	return token.Of(string(c.State)), c.ExpiresAt.Add(CeremonyTime)
}
