package ports

import "errors"

// ErrNoRing means that a box cannot seal or open at the moment, for want of its ring of keys. What it refuses for any other
// reason it will refuse again.
var ErrNoRing = errors.New("the key ring cannot be used at the moment")

// SecretBox encrypts what must be kept but never read in the store: passwords, shared secrets.
type SecretBox interface {
	// Seal encrypts plaintext and binds it to context: Open fails under any other context. ErrNoRing.
	Seal(plaintext []byte, context string) ([]byte, error)
	// Open decrypts what Seal made, with any key of the ring. ErrNoRing.
	Open(sealed []byte, context string) ([]byte, error)
}
