// Package fakebox implements ports.SecretBox for tests and scenarios. It really encrypts, so that a test can search for
// plaintext where none may be, but its key is in this file: it keeps nothing secret.
package fakebox

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
)

// ErrUnreadable says that a value was changed or was sealed under another context.
var ErrUnreadable = errors.New("the sealed value cannot be opened under this context")

// Box implements ports.SecretBox. It is safe for concurrent use.
type Box struct{ aead cipher.AEAD }

// New makes a box. All boxes have the same key: each opens what another sealed.
func New() *Box {
	block, err := aes.NewCipher([]byte("this key is known to everybody.."))
	if err != nil {
		panic("fakebox: " + err.Error()) // only a key of a wrong length
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("fakebox: " + err.Error()) // only a block size that AES does not have
	}
	return &Box{aead: aead}
}

// Seal encrypts plaintext and binds it to context.
func (b *Box) Seal(plaintext []byte, context string) ([]byte, error) {
	return b.aead.Seal(nil, nil, plaintext, []byte(context)), nil
}

// Open decrypts what Seal made under the same context.
func (b *Box) Open(sealed []byte, context string) ([]byte, error) {
	plaintext, err := b.aead.Open(nil, nil, sealed, []byte(context))
	if err != nil {
		return nil, ErrUnreadable
	}
	return plaintext, nil
}
