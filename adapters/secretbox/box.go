package secretbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/core/cryptofmt"
	"github.com/tink-crypto/tink-go/v2/keyset"
	tinkpb "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// ErrUnreadable means that a sealed value cannot be opened: it was sealed under another context, with a key that is not in the
// ring, or it was modified. The cause cannot be told apart.
var ErrUnreadable = errors.New("the sealed value cannot be opened with this key ring and context")

// Box seals and opens with a ring of keys. It is safe for concurrent use.
type Box struct {
	file *ringFile // nil for a box made by Parse

	mu   sync.RWMutex
	ring ring
}

// ring is the key ring as last read. Every value sealed by its primary begins with prefix.
type ring struct {
	aead   tink.AEAD
	prefix []byte
}

// Parse makes a box from the text of a key ring, as an environment variable holds it.
func Parse(text []byte) (*Box, error) {
	r, err := newRing(text)
	if err != nil {
		return nil, err
	}
	return &Box{ring: r}, nil
}

func newRing(text []byte) (ring, error) {
	handle, err := parseKeyset(text)
	if err != nil {
		return ring{}, err
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return ring{}, ErrKeyset
	}
	prefix, err := primaryPrefix(handle)
	if err != nil {
		return ring{}, err
	}
	return ring{aead: primitive, prefix: prefix}, nil
}

// primaryPrefix is how Tink marks values with the key that sealed them: 1, then the key's ID. Raw keys, which leave no mark,
// are refused, because NeedsReseal could not recognise their values.
func primaryPrefix(handle *keyset.Handle) ([]byte, error) {
	info := handle.KeysetInfo()
	for _, key := range info.GetKeyInfo() {
		if key.GetKeyId() == info.GetPrimaryKeyId() && key.GetOutputPrefixType() == tinkpb.OutputPrefixType_TINK {
			return binary.BigEndian.AppendUint32([]byte{cryptofmt.TinkStartByte}, key.GetKeyId()), nil
		}
	}
	return nil, ErrKeyset
}

// Seal encrypts plaintext with the primary key and binds it to context. A box that follows a file refuses while that file
// cannot be read: a value sealed with a key that is being dropped would be lost.
func (b *Box) Seal(plaintext []byte, context string) ([]byte, error) {
	if err := b.follow(); err != nil {
		return nil, err
	}
	sealed, err := b.current().aead.Encrypt(plaintext, []byte(context))
	if err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	return sealed, nil
}

// Open decrypts what Seal made, with any key of the ring; ErrUnreadable where that fails.
func (b *Box) Open(sealed []byte, context string) ([]byte, error) {
	if plaintext, err := b.current().aead.Decrypt(sealed, []byte(context)); err == nil {
		return plaintext, nil
	}
	if err := b.follow(); err != nil {
		return nil, fmt.Errorf("%w (and %w)", ErrUnreadable, err)
	}
	plaintext, err := b.current().aead.Decrypt(sealed, []byte(context))
	if err != nil {
		return nil, ErrUnreadable
	}
	return plaintext, nil
}

// NeedsReseal reports whether a value was sealed by another key than the current primary.
func (b *Box) NeedsReseal(sealed []byte) bool {
	_ = b.follow() // with an unreadable file the ring in memory still answers
	return !bytes.HasPrefix(sealed, b.current().prefix)
}

func (b *Box) current() ring {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.ring
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
	return nil
}
