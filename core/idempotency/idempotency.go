// Package idempotency defines valid Idempotency-Keys, and when two requests count as the same.
package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Header is the name of the request header.
const Header = "Idempotency-Key"

// MaxLength is the longest key, in characters (spec, "Limits").
const MaxLength = 200

// InternalPrefix is reserved for keys that the service itself generates.
const InternalPrefix = "service-internal-"

// Key is a validated header value.
type Key string

// Parse checks a header value: 1-200 characters, no line breaks or NUL, not the internal prefix.
func Parse(value string) (Key, error) {
	switch {
	case value == "":
		return "", fault.Invalid(Header, "is required")
	case !utf8.ValidString(value):
		return "", fault.Invalid(Header, "must be valid UTF-8")
	case utf8.RuneCountInString(value) > MaxLength:
		return "", fault.Invalid(Header, "must have at most %d characters", MaxLength)
	case strings.ContainsAny(value, "\r\n\x00"):
		return "", fault.Invalid(Header, "must not contain line breaks or NUL")
	case strings.HasPrefix(value, InternalPrefix):
		return "", fault.Invalid(Header, "must not start with %s", InternalPrefix)
	}
	return Key(value), nil
}

// Fingerprint identifies what a request asks for. Its parts are length-prefixed, so that different lists of parts never
// collide.
type Fingerprint string

// NewFingerprint hashes the meaning of a request: its choices after parsing, not its bytes.
func NewFingerprint(parts ...string) Fingerprint {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		for i, v := 7, len(p); i >= 0; i, v = i-1, v>>8 {
			n[i] = byte(v)
		}
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return Fingerprint(hex.EncodeToString(h.Sum(nil)))
}

// Record binds a key of one account and route to what its first request created.
type Record struct {
	AccountID   id.AccountID `db:"account_id"`
	Route       string       `db:"route"`
	Key         Key          `db:"key"`
	Fingerprint Fingerprint  `db:"fingerprint"`
	ResourceID  string       `db:"resource_id"`
	CreatedAt   time.Time    `db:"created_at"`
}

// Derived is shown in place of the key in answers that never show the key.
func (r Record) Derived() Fingerprint {
	return NewFingerprint(string(r.AccountID), r.Route, string(r.Key))
}

// Replay decides about a key that was used before: it returns nil for the same request, the given conflict code otherwise.
func (r Record) Replay(f Fingerprint, conflict fault.Code) error {
	if r.Fingerprint != f {
		return fault.New(conflict, "this %s was used with a different request", Header)
	}
	return nil
}
