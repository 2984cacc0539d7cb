package account

import (
	"crypto/sha256"
	"crypto/subtle"
	"hash/crc32"
	"net/netip"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/network"
)

// A key reads <prefix>_<id>_<secret><checksum>: the prefix tells the two kinds apart, the ID is public, the secret is 32
// random base62 characters (over 190 bits), and the checksum is the CRC-32 of everything before it, so that a mistyped
// key is refused without a look-up.
const (
	KeyPrefix   = "pgh"
	CIKeyPrefix = "pghci"

	keyIDLength     = 8
	keySecretLength = 32
	checksumLength  = 6
	alphabet        = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// KeyCharacters is how many random base62 characters NewKey needs.
const KeyCharacters = keyIDLength + keySecretLength

// KeyKind distinguishes an account's key from a preview CI key.
type KeyKind string

// The kinds of keys.
const (
	AccountKey KeyKind = "account"
	CIKey      KeyKind = "ci"
)

// Scope says what a key reaches. It never changes (spec, "Versioning").
type Scope string

// The scopes. A CI key reaches none of the account's databases as such: it is stored as one of selected databases, without any.
const (
	FullAccount       Scope = "full"
	SelectedDatabases Scope = "selected"
)

// Key is what is stored of an API key: never the secret.
type Key struct {
	ID          id.KeyID       `db:"id"`
	Kind        KeyKind        `db:"kind"`
	AccountID   id.AccountID   `db:"account_id"`
	UserID      id.UserID      `db:"user_id"`
	NamespaceID id.NamespaceID `db:"namespace_id"` // CI keys only
	Label       string         `db:"label"`
	Scope       Scope          `db:"scope"`
	Hash        []byte         `db:"hash"`
	CreatedAt   time.Time      `db:"created_at"`
	LastUsedAt  *time.Time     `db:"last_used_at"`
	RevokedAt   *time.Time     `db:"revoked_at"`
	ExpiresAt   *time.Time     `db:"expires_at"` // nil: never
	Networks    network.List   `db:"networks"`   // where it may be used from
	// CI keys that were exchanged for a token: by what trust, and whose the token was.
	TrustID id.TrustID `db:"trust_id"`
	Issuer  string     `db:"issuer"`
	Subject string     `db:"subject"`
}

// Namespace binds preview CI keys to one account and keeps the previews of different pipelines apart.
type Namespace struct {
	ID        id.NamespaceID `db:"id"`
	AccountID id.AccountID   `db:"account_id"`
	Name      string         `db:"name"`
	CreatedAt time.Time      `db:"created_at"`
	RevokedAt *time.Time     `db:"revoked_at"`
}

// Prefix is the part of the key that may be shown.
func (k Key) Prefix() string { return prefixOf(k.Kind) + "_" + string(k.ID) }

// Accepts compares the presented key with the stored hash in constant time. A revoked or expired key accepts nothing.
func (k Key) Accepts(hash [32]byte, now time.Time) bool {
	same := subtle.ConstantTimeCompare(k.Hash, hash[:]) == 1
	return same && k.RevokedAt == nil && !k.Expired(now)
}

// Admits is Accepts for a key that is presented from an address: outside its networks it accepts nothing either.
func (k Key) Admits(hash [32]byte, from netip.Addr, now time.Time) bool {
	return k.Accepts(hash, now) && k.Networks.Contains(from)
}

// Expired reports whether the time of a key is over.
func (k Key) Expired(now time.Time) bool { return k.ExpiresAt != nil && !now.Before(*k.ExpiresAt) }

// Exchanged reports whether a token was exchanged for the key.
func (k Key) Exchanged() bool { return k.TrustID != "" }

// Credential is a presented key that is well formed.
type Credential struct {
	Kind KeyKind
	ID   id.KeyID
	Hash [32]byte
}

// NewKey builds the text of a key from KeyCharacters random base62 characters.
func NewKey(kind KeyKind, random string) (text string, c Credential) {
	body := prefixOf(kind) + "_" + random[:keyIDLength] + "_" + random[keyIDLength:KeyCharacters]
	text = body + checksum(body)
	return text, Credential{Kind: kind, ID: id.KeyID(random[:keyIDLength]), Hash: sha256.Sum256([]byte(text))}
}

// Key is the record of a new key of an account, which its owner has.
func (c Credential) Key(of Account, label string, s Scope, now time.Time) Key {
	return Key{
		ID: c.ID, Kind: c.Kind, AccountID: of.ID, UserID: of.OwnerID, Label: label, Scope: s, Hash: c.Hash[:], CreatedAt: now,
	}
}

// CIKey is the record of a new CI key of the namespace, whose account is owner.
func (n Namespace) CIKey(c Credential, owner Account, now time.Time) Key {
	k := c.Key(owner, n.Name, SelectedDatabases, now)
	k.NamespaceID = n.ID
	return k
}

// ParseKeyID accepts the ID of a key, also behind its prefix. Anything else is VALIDATION_ERROR on the flag, without the text: it
// might be a whole key.
func ParseKeyID(flag, text string) (id.KeyID, error) {
	name := text
	if _, rest, ok := cutKind(text); ok {
		name = rest
	}
	if len(name) != keyIDLength || !ascii.Base62(name) {
		return "", fault.Invalid(flag, "must be the ID or the prefix of a key, as in %s_0a1B2c3D", KeyPrefix)
	}
	return id.KeyID(name), nil
}

// ParseKey checks shape and checksum. Every refusal is the same UNAUTHORIZED.
func ParseKey(text string) (Credential, error) {
	kind, rest, ok := cutKind(text)
	if !ok || len(rest) != keyIDLength+1+keySecretLength+checksumLength || rest[keyIDLength] != '_' {
		return Credential{}, ErrUnauthorized()
	}
	body, sum := text[:len(text)-checksumLength], text[len(text)-checksumLength:]
	if !ascii.Base62(rest[:keyIDLength]) || !ascii.Base62(rest[keyIDLength+1:]) || checksum(body) != sum {
		return Credential{}, ErrUnauthorized()
	}
	return Credential{Kind: kind, ID: id.KeyID(rest[:keyIDLength]), Hash: sha256.Sum256([]byte(text))}, nil
}

// ErrUnauthorized is the one answer to a missing, malformed, unknown, replaced, revoked or expired key, and to one from outside
// its networks: who has found or stolen a key does not learn whether it is good somewhere else.
func ErrUnauthorized() error { return fault.New(fault.Unauthorized, "a valid API key is required") }

// ValidateLabel checks the label of a key: 1-64 characters, no control characters.
func ValidateLabel(label string) (string, error) { return fault.Label("label", label, 1, 64) }

func prefixOf(kind KeyKind) string {
	if kind == CIKey {
		return CIKeyPrefix
	}
	return KeyPrefix
}

func cutKind(text string) (KeyKind, string, bool) {
	if rest, ok := strings.CutPrefix(text, CIKeyPrefix+"_"); ok {
		return CIKey, rest, true
	}
	rest, ok := strings.CutPrefix(text, KeyPrefix+"_")
	return AccountKey, rest, ok
}

// checksum writes the CRC-32 in base62, most significant digit first.
func checksum(s string) string {
	v := crc32.ChecksumIEEE([]byte(s))
	var out [checksumLength]byte
	for i := checksumLength - 1; i >= 0; i-- {
		out[i] = alphabet[v%62]
		v /= 62
	}
	return string(out[:])
}
