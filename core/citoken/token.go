package citoken

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// MaxToken is the longest token that is looked at, in bytes. Those of CI systems have one or two KiB.
const MaxToken = 16 << 10

const (
	// longestLife is how far ahead the end of a token may be: until then it is remembered.
	longestLife = 24 * time.Hour
	// skew is how far the issuer's clock may be ahead of ours.
	skew = time.Minute
	// memory is how long a token is remembered beyond its end: the clocks of hosts differ.
	memory = time.Hour
)

// CheckText refuses what cannot be a token: VALIDATION_ERROR on "token", which quotes nothing of it.
func CheckText(token string) error {
	if !visible(token, MaxToken) {
		return fault.Invalid("token", "must have 1-%d characters, all of them printable ASCII", MaxToken)
	}
	return nil
}

// Claims are what a token says whose signature is its issuer's. A time is zero where it says none.
type Claims struct {
	Issuer, Subject                string
	Audience                       []string
	ExpiresAt, NotBefore, IssuedAt time.Time
	ID                             string   // jti; empty where it has none
	Signed                         [32]byte // SHA-256 of what the signature is of
}

// Refusal says why a token is refused, for the operator only: the client always gets ErrRefused. No refusal
// quotes anything of a token.
type Refusal string

// Why tokens are refused.
const (
	NoNamespace  Refusal = "the namespace does not exist, was revoked, or trusts no issuer"
	NotSigned    Refusal = "it is not a token that an issuer of the namespace has signed, with an allowed algorithm"
	NotAsked     Refusal = "its issuer could not be asked for its keys"
	NotNow       Refusal = "it has expired, is not valid yet, or is valid for too long"
	NotFor       Refusal = "no trust of the namespace has its audience, or it is for several"
	NotMatched   Refusal = "no trust of the namespace matches its subject"
	AlreadySpent Refusal = "it was exchanged before"
)

// Error implements error.
func (r Refusal) Error() string { return "the token is refused: " + string(r) }

// ErrRefused is the one answer to every token that is refused, whatever the cause.
func ErrRefused() error {
	return fault.New(fault.Unauthorized, "the token cannot be exchanged for a key of this namespace")
}

// Decide returns the trust by which a token makes a key, or a Refusal.
func Decide(trusts []Trust, c Claims, now time.Time) (Trust, error) {
	switch {
	case !c.ExpiresAt.After(now), c.ExpiresAt.After(now.Add(longestLife)),
		c.NotBefore.After(now.Add(skew)), c.IssuedAt.After(now.Add(skew)):
		return Trust{}, NotNow
	case len(c.Audience) != 1: // each of several could present here what it was given
		return Trust{}, NotFor
	case !visible(c.Subject, maxSubject):
		return Trust{}, NotMatched
	}
	why := NotFor
	for _, t := range trusts {
		if t.Issuer != c.Issuer || t.Audience != c.Audience[0] {
			continue
		}
		if t.Subject.Matches(c.Subject) {
			return t, nil
		}
		why = NotMatched
	}
	return Trust{}, why
}

// Issuers are those of a namespace's trusts, each once.
func Issuers(trusts []Trust) (list []string) {
	for _, t := range trusts {
		if !slices.Contains(list, t.Issuer) {
			list = append(list, t.Issuer)
		}
	}
	return list
}

// Spent is what is remembered of a token that was exchanged: nothing that says what it was.
type Spent struct {
	Mark  []byte    `db:"mark"`
	Until time.Time `db:"until"`
}

// Spent returns what is remembered of the token. Two tokens of an issuer with one ID are one token; without an ID, what was
// signed tells them apart. The signature does not: of one message there can be many.
func (c Claims) Spent() Spent {
	kind, name := "jti", c.ID
	if name == "" {
		kind, name = "signed", string(c.Signed[:])
	}
	issuer := sha256.Sum256([]byte(c.Issuer))
	mark := sha256.Sum256([]byte(kind + "\x00" + string(issuer[:]) + name))
	return Spent{Mark: mark[:], Until: c.ExpiresAt.Add(memory)}
}
