package store

import (
	"crypto/rand"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
)

func newID[T ~string]() T {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never returns an error
	return id.FromBytes[T](b)
}

// randomBase62 is what account.NewKey needs.
func randomBase62() string {
	var b [account.KeyCharacters]byte
	_, _ = rand.Read(b[:])
	for i := range b {
		b[i] = "0123456789abcdef"[b[i]%16]
	}
	return string(b[:])
}
