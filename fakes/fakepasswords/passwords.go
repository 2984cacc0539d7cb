// Package fakepasswords hashes passwords at once, where a test is not about hashing.
package fakepasswords

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Hasher implements ports.Passwords. Its hashes protect nothing.
type Hasher struct{}

// Hash returns salt and hash.
func (Hasher) Hash(password string, salt [16]byte) (string, error) {
	text := hex.EncodeToString(salt[:])
	sum := sha256.Sum256([]byte(text + password))
	return "fake$" + text + "$" + hex.EncodeToString(sum[:]), nil
}

// Matches hashes again.
func (h Hasher) Matches(hash, password string) bool {
	parts := strings.Split(hash, "$")
	if len(parts) != 3 {
		return false
	}
	var salt [16]byte
	n, err := hex.Decode(salt[:], []byte(parts[1]))
	again, _ := h.Hash(password, salt) // it never fails
	return err == nil && n == len(salt) && again == hash
}
