package system

import "crypto/rand"

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// unbiased is how many byte values map evenly to the 62 characters; other bytes are drawn again.
const unbiased = 256 - 256%len(alphabet)

// Entropy implements ports.Entropy with the operating system's random numbers. If they are not available, the program ends.
type Entropy struct{}

// UUID returns 16 random bytes for an identifier.
func (Entropy) UUID() (b [16]byte) {
	_, _ = rand.Read(b[:]) // it never returns an error: it ends the program
	return b
}

// Salt returns 16 random bytes for a SCRAM verifier.
func (e Entropy) Salt() [16]byte { return e.UUID() }

// Seed returns 32 random bytes for the private part of a signing key.
func (Entropy) Seed() (b [32]byte) {
	_, _ = rand.Read(b[:]) // see UUID
	return b
}

// Base62 returns n random characters 0-9, A-Z, a-z, each equally likely.
func (Entropy) Base62(n int) string {
	text := make([]byte, 0, n)
	drawn := make([]byte, n+n/16+8)
	for len(text) < n {
		_, _ = rand.Read(drawn)
		for _, b := range drawn {
			if int(b) < unbiased && len(text) < n {
				text = append(text, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(text)
}
