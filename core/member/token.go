package member

import (
	"crypto/sha256"
	"crypto/subtle"
)

// TokenCharacters is how many random base62 characters a token has: over 238 bits, so that it cannot be guessed.
const TokenCharacters = 40

// Hash is what is stored of a token.
type Hash [sha256.Size]byte

// HashOf is the hash of a token.
func HashOf(token string) Hash { return sha256.Sum256([]byte(token)) }

// ParseToken reads a presented token; false for a text that is not a token.
func ParseToken(text string) (Hash, bool) {
	if len(text) != TokenCharacters {
		return Hash{}, false
	}
	for i := range len(text) {
		c := text[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return Hash{}, false
		}
	}
	return HashOf(text), true
}

// Accepts compares a presented token with the stored one in constant time. An invitation is looked up by the hash, which tells
// nothing about tokens; this is for one that has been read again, and may have another token by now.
func (i Invitation) Accepts(token Hash) bool {
	return subtle.ConstantTimeCompare(i.TokenHash, token[:]) == 1
}
