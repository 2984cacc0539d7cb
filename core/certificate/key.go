// Package certificate holds signed statements, and the keys that sign them: restore certificates, that a backup file was restored
// in isolation and found equal to the database, and recovery certificates, that a moment was had back from an archive.
package certificate

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// SeedBytes is the length of a key's private part.
const SeedBytes = ed25519.SeedSize

// Key is an Ed25519 key of the installation. One key signs at a time. A key that was retired signs no more, and its private part
// is gone; its public part stays, so that what it has signed can be checked for ever.
type Key struct {
	ID         id.CertificateKeyID `db:"id"`
	PublicKey  []byte              `db:"public_key"`
	SealedSeed []byte              `db:"sealed_seed"` // nil from the retirement on
	CreatedAt  time.Time           `db:"created_at"`
	RetiredAt  *time.Time          `db:"retired_at"` // nil: it signs
}

// NewKey makes the public side of a key from its private part, which its caller seals.
func NewKey(k id.CertificateKeyID, seed [SeedBytes]byte, now time.Time) Key {
	public := ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)
	return Key{ID: k, PublicKey: public, CreatedAt: now}
}

// SecretContext binds the sealed private part to its key.
func (k Key) SecretContext() string { return "certificate-key/" + string(k.ID) }

// Public is the key without its private part.
func (k Key) Public() Key {
	k.SealedSeed = nil
	return k
}

// Published are keys without their private parts.
func Published(list []Key) []Key {
	for i := range list {
		list[i] = list[i].Public()
	}
	return list
}

// subjectPublicKeyInfo is what stands before the 32 bytes of an Ed25519 key in DER (RFC 8410, section 4).
var subjectPublicKeyInfo = []byte{0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00}

// PEM is the public key as openssl reads it.
func (k Key) PEM() string {
	der := append(bytes.Clone(subjectPublicKeyInfo), k.PublicKey...)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// Certificate is a signed document.
type Certificate struct {
	KeyID     id.CertificateKeyID
	Document  []byte // what was signed, byte for byte
	Signature []byte
}

// errWrongSeed says nothing of the seed.
var errWrongSeed = errors.New("the private part that is stored for the certificate key is not this key's")

// Sign signs a document with the key's private part. The same key gives the same document the same signature.
func (k Key) Sign(seed, document []byte) (Certificate, error) {
	if len(seed) != SeedBytes {
		return Certificate{}, errWrongSeed
	}
	private := ed25519.NewKeyFromSeed(seed)
	if !bytes.Equal(private.Public().(ed25519.PublicKey), k.PublicKey) {
		return Certificate{}, errWrongSeed
	}
	return Certificate{KeyID: k.ID, Document: document, Signature: ed25519.Sign(private, document)}, nil
}

// ErrNoKey is the error for a certificate while no key signs.
func ErrNoKey() error {
	return fault.New(fault.FeatureNotAvailable, "this installation has no key to sign certificates with; ask its operator, who "+
		"makes one with: pgherd admin certificate-key create")
}

// ErrKeySigns refuses a key beside one that signs.
func ErrKeySigns() error {
	return fault.Invalid("key", "another one signs already; pgherd admin certificate-key rotate replaces it")
}
