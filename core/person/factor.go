package person

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // RFC 6238 and every authenticator app: the HMAC does not depend on collisions
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// An authenticator app shows a code of six digits, another one every 30 seconds (RFC 6238).
const (
	secretBytes = 20
	codeDigits  = 6
	codeModulus = 1_000_000
	stepSeconds = 30
	// drift is by how many steps the app's clock may be off.
	drift = 1
)

// Factor is a person's second factor: an authenticator app. It counts from when a code of it was given once.
type Factor struct {
	UserID       id.UserID  `db:"id"`
	SealedSecret []byte     `db:"sealed_secret"`
	LastStep     int64      `db:"last_step"` // of the last code that was accepted: no code works twice
	CreatedAt    time.Time  `db:"created_at"`
	ConfirmedAt  *time.Time `db:"confirmed_at"` // nil: it does not count yet
}

// SecretContext is what the sealed secret is bound to.
func (f Factor) SecretContext() string { return "factor/" + string(f.UserID) }

// Counts reports whether a log-in has to have a code.
func (f Factor) Counts() bool { return f.ConfirmedAt != nil }

// Confirmed is the factor after its first code.
func (f Factor) Confirmed(now time.Time) Factor {
	if f.ConfirmedAt == nil {
		f.ConfirmedAt = &now
	}
	return f
}

// Secret is what an authenticator app and the service share.
type Secret []byte

// NewSecret is a secret of 32 random bytes, of which it takes as many as apps expect.
func NewSecret(random [32]byte) Secret { return random[:secretBytes] }

var text32 = base32.StdEncoding.WithPadding(base32.NoPadding)

// Text is the secret as a person types it into an app.
func (s Secret) Text() string { return text32.EncodeToString(s) }

// Address is the secret as an app reads it from a QR code.
func (s Secret) Address(issuer, email string) string {
	query := url.Values{"secret": {s.Text()}, "issuer": {issuer}}
	return "otpauth://totp/" + url.PathEscape(issuer) + ":" + url.PathEscape(email) + "?" + query.Encode()
}

// Code is the code of a step.
func (s Secret) Code(step int64) string {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step))
	mac := hmac.New(sha1.New, s)
	mac.Write(counter[:])
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0x0f
	number := binary.BigEndian.Uint32(sum[at:at+4]) & 0x7fffffff
	return fmt.Sprintf("%0*d", codeDigits, number%codeModulus)
}

// Accept returns the factor after a code that is right at a time, and whether it is. A code of a step that was used, or of one
// before it, is wrong.
func (f Factor) Accept(s Secret, code string, now time.Time) (Factor, bool) {
	current := now.Unix() / stepSeconds
	for step := max(current-drift, f.LastStep+1); step <= current+drift; step++ {
		if subtle.ConstantTimeCompare([]byte(s.Code(step)), []byte(code)) == 1 {
			f.LastStep = step
			return f, true
		}
	}
	return f, false
}
