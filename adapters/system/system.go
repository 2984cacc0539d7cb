// Package system is ports.Clock and ports.Entropy on what the operating system offers.
package system

import (
	"crypto/rand"
	"sync/atomic"
	"time"
)

// Clock is the system's clock. Advance moves it forward for the development host; every other host leaves it alone.
type Clock struct{ ahead atomic.Int64 }

// Now returns the time in UTC, at PostgreSQL's precision of a microsecond.
func (c *Clock) Now() time.Time {
	return time.Now().Add(time.Duration(c.ahead.Load())).UTC().Truncate(time.Microsecond)
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

// Entropy is the system's source of random numbers. It never fails: the runtime ends the program where the source does.
type Entropy struct{}

// UUID returns 16 random bytes for an identifier.
func (Entropy) UUID() (b [16]byte) {
	_, _ = rand.Read(b[:])
	return b
}

// Salt returns 16 random bytes for a SCRAM verifier.
func (e Entropy) Salt() [16]byte { return e.UUID() }

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Base62 returns n random characters, each equally likely: a byte of 248 or more is thrown away, because 248 is the largest
// multiple of 62 that a byte can hold.
func (Entropy) Base62(n int) string {
	const fair = 256 / len(base62) * len(base62)
	out := make([]byte, 0, n)
	buffer := make([]byte, n+n/8+8)
	for len(out) < n {
		_, _ = rand.Read(buffer)
		for _, b := range buffer {
			if int(b) < fair && len(out) < n {
				out = append(out, base62[int(b)%len(base62)])
			}
		}
	}
	return string(out)
}
