// Package token holds the secrets that links and cookies carry: what they look like, and what is stored of them.
package token

import (
	"crypto/sha256"
	"crypto/subtle"

	"github.com/pgherd/pgherd/core/ascii"
)

// Characters is how many random base62 characters a token has: over 238 bits, so that it cannot be guessed.
const Characters = 40

// Hash is what is stored of a token. A token is looked up by it, which tells nothing about tokens.
type Hash [sha256.Size]byte

// Of is the hash of a token.
func Of(text string) Hash { return sha256.Sum256([]byte(text)) }

// Parse reads a presented token; false for a text that is not one.
func Parse(text string) (Hash, bool) {
	if len(text) != Characters || !ascii.Base62(text) {
		return Hash{}, false
	}
	return Of(text), true
}

// Equals compares with a stored hash in constant time, for a row that has been read again and may have another token by now.
func (h Hash) Equals(stored []byte) bool { return subtle.ConstantTimeCompare(h[:], stored) == 1 }
