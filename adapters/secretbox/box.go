package secretbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/core/cryptofmt"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/ports"
)

// ErrUnreadable means that a sealed value cannot be opened: it was sealed under another context, with a key that is not in the
// ring, or it was modified. The cause cannot be told apart.
var ErrUnreadable = errors.New("the sealed value cannot be opened with this key ring and context")

// ErrNoSuchKey means that the ring lacks the key that is to seal.
var ErrNoSuchKey = errors.New("the secret key ring does not have the key that stored secrets are encrypted with")

// ErrUnconfirmed means that nobody has said for keyring.Trust which key is to seal.
var ErrUnconfirmed = errors.New("it was not confirmed lately which key of the secret key ring encrypts")

// Box seals and opens with a ring of keys. It is safe for concurrent use. It seals with the ring's primary, until SealWith is
// called for the first time.
type Box struct {
	file *ringFile // nil for a box made by Parse

	mu      sync.RWMutex
	ring    ring
	version int
	seal    order
}

// order is what SealWith has said, and when.
type order struct {
	key keyring.Fingerprint
	at  time.Time
}

// holds reports whether the order is still good. The clock of the process stands still while the machine sleeps, and the one on
// the wall may be set, so it takes both.
func (o order) holds() bool {
	now := time.Now()
	wall := now.Round(0).Sub(o.at.Round(0))
	return now.Sub(o.at) <= keyring.Trust && wall <= keyring.Trust && wall >= -keyring.Trust
}

// ring is the key ring as last read.
type ring struct {
	aead tink.AEAD
	own  keyring.Fingerprint // of the primary
	keys []key
}

// key is a key of a ring. Every value that it has sealed begins with prefix.
type key struct {
	fingerprint keyring.Fingerprint
	prefix      []byte
	aead        tink.AEAD // of the ring, with this key as its primary
}

// Parse makes a box from the text of a key ring, as an environment variable holds it.
func Parse(text []byte) (*Box, error) {
	r, err := newRing(text)
	if err != nil {
		return nil, err
	}
	return &Box{ring: r}, nil
}

func newRing(text []byte) (r ring, err error) {
	handle, err := parseKeyset(text)
	if err != nil {
		return ring{}, err
	}
	if r.aead, err = aead.New(handle); err != nil {
		return ring{}, ErrKeyset
	}
	for _, f := range fingerprints(handle) {
		k := key{fingerprint: f.of, prefix: binary.BigEndian.AppendUint32([]byte{cryptofmt.TinkStartByte}, f.id)}
		if k.aead, err = withPrimary(handle, f.id); err != nil {
			return ring{}, ErrKeyset
		}
		if f.id == handle.KeysetInfo().GetPrimaryKeyId() {
			r.own = f.of
		}
		r.keys = append(r.keys, k)
	}
	if r.own == "" {
		return ring{}, ErrKeyset
	}
	return r, nil
}

func withPrimary(handle *keyset.Handle, id uint32) (tink.AEAD, error) {
	manager := keyset.NewManagerFromHandle(handle)
	if err := manager.SetPrimary(id); err != nil {
		return nil, err
	}
	chosen, err := manager.Handle()
	if err != nil {
		return nil, err
	}
	return aead.New(chosen)
}

func (r ring) key(f keyring.Fingerprint) (key, bool) {
	i := slices.IndexFunc(r.keys, func(k key) bool { return k.fingerprint == f })
	if i < 0 {
		return key{}, false
	}
	return r.keys[i], true
}

// Keys implements ports.KeyRing. It fails while a file that the box follows cannot be read.
func (b *Box) Keys() (keyring.Ring, error) {
	if err := b.follow(); err != nil {
		return keyring.Ring{}, err
	}
	now, _ := b.current()
	return now.known(), nil
}

func (r ring) known() keyring.Ring {
	known := keyring.Ring{Own: r.own}
	for _, k := range r.keys {
		known.Keys = append(known.Keys, k.fingerprint)
	}
	return known
}

// SealWith implements ports.KeyRing.
func (b *Box) SealWith(f keyring.Fingerprint) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seal = order{key: f, at: time.Now()}
	if _, found := b.ring.key(f); !found {
		return ErrNoSuchKey
	}
	return nil
}

// SealedBy implements ports.KeyRing.
func (b *Box) SealedBy(sealed []byte) keyring.Fingerprint {
	now, _ := b.current()
	for _, k := range now.keys {
		if bytes.HasPrefix(sealed, k.prefix) {
			return k.fingerprint
		}
	}
	return ""
}

// Seal encrypts plaintext and binds it to context, with the key that SealWith has named. A box that follows a file refuses while
// that file cannot be read: a value sealed with a key that is being dropped would be lost. Every refusal is ports.ErrNoRing.
func (b *Box) Seal(plaintext []byte, context string) ([]byte, error) {
	if err := b.follow(); err != nil {
		return nil, unusable(err)
	}
	now, with := b.current()
	if with.key == "" {
		with.key = now.own
	} else if !with.holds() {
		return nil, unusable(ErrUnconfirmed)
	}
	key, found := now.key(with.key)
	if !found {
		return nil, unusable(ErrNoSuchKey)
	}
	sealed, err := key.aead.Encrypt(plaintext, []byte(context))
	if err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	return sealed, nil
}

func unusable(err error) error { return fmt.Errorf("%w: %w", ports.ErrNoRing, err) }

// Open decrypts what Seal made, with any key of the ring; ErrUnreadable where that fails. It is ports.ErrNoRing also where a
// better ring may open the value: the file cannot be read, or lacks the key that SealWith has named.
func (b *Box) Open(sealed []byte, context string) ([]byte, error) {
	now, _ := b.current()
	if plaintext, err := now.aead.Decrypt(sealed, []byte(context)); err == nil {
		return plaintext, nil
	}
	if err := b.follow(); err != nil {
		return nil, fmt.Errorf("%w (and %w)", ErrUnreadable, unusable(err))
	}
	now, with := b.current()
	plaintext, err := now.aead.Decrypt(sealed, []byte(context))
	if err == nil {
		return plaintext, nil
	}
	if _, found := now.key(with.key); with.key != "" && !found {
		return nil, fmt.Errorf("%w (and %w)", ErrUnreadable, unusable(ErrNoSuchKey))
	}
	return nil, ErrUnreadable
}

// Version is another number after each change of the file.
func (b *Box) Version() int {
	_ = b.follow() // one that cannot be read is no other version
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.version
}

func (b *Box) current() (ring, order) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ring, b.seal
}

// follow reads the file again if it has changed.
func (b *Box) follow() error {
	if b.file == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	text, changed, err := b.file.readChanged()
	if err != nil || !changed {
		return err
	}
	r, err := newRing(text)
	if err != nil {
		b.file.forget()
		return fmt.Errorf("%s: %w", b.file.path, err)
	}
	b.ring = r
	b.version++
	return nil
}
