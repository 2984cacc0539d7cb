package fakebox

import (
	"bytes"
	"errors"
	"slices"
	"sync"

	"github.com/pgherd/pgherd/core/keyring"
)

// Ring implements ports.KeyRing: a Box that marks what it seals with the name of a key, and opens what has the mark of one that
// it has. The names are the fingerprints, and no order to seal ends by time. It is safe for concurrent use.
type Ring struct {
	box *Box

	mu   sync.Mutex
	keys []keyring.Fingerprint
	own  keyring.Fingerprint
	seal keyring.Fingerprint
}

// NewRing makes a ring of some keys; it seals with the first of them while nobody says otherwise.
func NewRing(keys ...keyring.Fingerprint) *Ring { return &Ring{box: New(), keys: keys, own: keys[0]} }

// Has gives the ring other keys, as somebody does who writes its file. It still seals with the one that it was told to.
func (r *Ring) Has(keys ...keyring.Fingerprint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys, r.own = keys, keys[0]
}

// Keys implements ports.KeyRing.
func (r *Ring) Keys() (keyring.Ring, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return keyring.Ring{Keys: slices.Clone(r.keys), Own: r.own}, nil
}

// ErrNoSuchKey says that the ring lacks a key.
var ErrNoSuchKey = errors.New("the ring does not have the key")

// SealWith implements ports.KeyRing.
func (r *Ring) SealWith(key keyring.Fingerprint) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seal = key; !slices.Contains(r.keys, key) {
		return ErrNoSuchKey
	}
	return nil
}

// SealedBy implements ports.KeyRing.
func (r *Ring) SealedBy(sealed []byte) keyring.Fingerprint {
	r.mu.Lock()
	defer r.mu.Unlock()
	mark, _, marked := bytes.Cut(sealed, []byte{0})
	if key := keyring.Fingerprint(mark); marked && slices.Contains(r.keys, key) {
		return key
	}
	return ""
}

// Seal implements ports.SecretBox.
func (r *Ring) Seal(plaintext []byte, context string) ([]byte, error) {
	r.mu.Lock()
	key := r.seal
	if key == "" {
		key = r.own
	}
	found := slices.Contains(r.keys, key)
	r.mu.Unlock()
	if !found {
		return nil, ErrNoSuchKey
	}
	sealed, err := r.box.Seal(plaintext, string(key)+"/"+context)
	return append([]byte(string(key)+"\x00"), sealed...), err
}

// Open implements ports.SecretBox.
func (r *Ring) Open(sealed []byte, context string) ([]byte, error) {
	key := r.SealedBy(sealed)
	if key == "" {
		return nil, ErrUnreadable
	}
	return r.box.Open(sealed[len(key)+1:], string(key)+"/"+context)
}
