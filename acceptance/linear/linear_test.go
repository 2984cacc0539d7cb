// Package linear holds the tests of additional roles under concurrent use: whatever calls overlap, there is an order of them in
// which every answer is right. Porcupine looks for it; the model says what is right.
package linear

import (
	"testing"
	"time"
)

// The size of a history: small enough to be checked in milliseconds, large enough that every kind of call meets every other.
const (
	clients = 4
	calls   = 16
	seeds   = 60
)

func TestAdditionalRolesAreLinearizable(t *testing.T) {
	begun := time.Now()
	for seed := uint64(1); seed <= seeds; seed++ {
		run(t, seed, setting{}, clients, calls).mustHold(t, seed)
	}
	t.Logf("%d histories in %v", seeds, time.Since(begun).Round(time.Millisecond))
}
