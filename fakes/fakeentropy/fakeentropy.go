// Package fakeentropy implements ports.Entropy for tests and scenarios: it never repeats itself, and the same seed gives the
// same values in the same order, so they are predictable.
package fakeentropy

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Entropy implements ports.Entropy. It is safe for concurrent use.
type Entropy struct {
	mu     sync.Mutex
	stream *rand.ChaCha8
}

// New makes the first of all sequences.
func New() *Entropy { return Seeded(1) }

// Seeded makes the sequence of a seed.
func Seeded(seed uint64) *Entropy {
	var key [32]byte
	copy(key[:], "everybody knows this seed")
	binary.LittleEndian.PutUint64(key[24:], seed)
	return &Entropy{stream: rand.NewChaCha8(key)}
}

// UUID returns the next 16 bytes.
func (e *Entropy) UUID() (b [16]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, _ = e.stream.Read(b[:]) // it never fails
	return b
}

// Salt returns the next 16 bytes.
func (e *Entropy) Salt() [16]byte { return e.UUID() }

// Seed returns the next 32 bytes.
func (e *Entropy) Seed() (b [32]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, _ = e.stream.Read(b[:]) // it never fails
	return b
}

// Base62 returns n characters 0-9, A-Z, a-z, each equally likely.
func (e *Entropy) Base62(n int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	random := rand.New(e.stream)
	text := make([]byte, n)
	for i := range text {
		text[i] = alphabet[random.IntN(len(alphabet))]
	}
	return string(text)
}
