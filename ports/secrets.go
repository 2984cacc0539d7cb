package ports

// SecretBox encrypts what must be kept but never read in the store: passwords, shared secrets.
type SecretBox interface {
	// Seal encrypts plaintext and binds it to context: Open fails under any other context.
	Seal(plaintext []byte, context string) ([]byte, error)
	// Open decrypts what Seal made, with any key of the ring.
	Open(sealed []byte, context string) ([]byte, error)
}
