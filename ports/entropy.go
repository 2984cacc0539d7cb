package ports

// Entropy generates values that cannot be guessed.
type Entropy interface {
	// UUID returns 16 random bytes for an identifier.
	UUID() [16]byte
	// Salt returns 16 random bytes for a SCRAM verifier.
	Salt() [16]byte
	// Seed returns 32 random bytes for the private part of a signing key.
	Seed() [32]byte
	// Base62 returns n random characters 0-9, A-Z, a-z, each equally likely.
	Base62(n int) string
}
