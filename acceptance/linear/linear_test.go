// Package linear holds the tests of additional roles under concurrent use: whatever calls overlap, there is an order of them in
// which every answer is right. Porcupine looks for it; the model says what is right.
package linear

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/sample"
)

// The size of a history: small enough to be checked in milliseconds, large enough that every kind of call meets every other.
const (
	clients = 4
	calls   = 16
	seeds   = 60

	wholeSeeds = 200 // of databases with a single login
	mostSeeds  = 600 // where the rarest kind of event was not met before
	fewSeeds   = 10  // in a sample, which has other ones each time
)

// A sample says nothing of what the histories held.
func TestAdditionalRolesAreLinearizable(t *testing.T) { areLinearizable(t, setting{}, seeds) }

// The same with a single login, beside operations of the database and what its owner does.
func TestLegacyRolesAreLinearizable(t *testing.T) {
	areLinearizable(t, setting{legacy: true}, wholeSeeds)
}

func areLinearizable(t *testing.T, s setting, seeds uint64) {
	t.Helper()
	if !sample.Whole() {
		first := 1 + sample.Number(t)*fewSeeds
		for seed := first; seed < first+fewSeeds; seed++ {
			run(t, seed, s, clients, calls).mustHold(t, seed)
		}
		return
	}
	begun, met, seed := time.Now(), coverage{}, uint64(1)
	for ; seed <= seeds || seed <= mostSeeds && len(met.missing(s.legacy)) > 0; seed++ {
		h := run(t, seed, s, clients, calls)
		h.mustHold(t, seed)
		met.add(h)
	}
	t.Logf("%d histories in %v, with %v", seed-1, time.Since(begun).Round(time.Millisecond), met)
	if missing := met.missing(s.legacy); len(missing) > 0 {
		t.Errorf("no history held any of %q", missing)
	}
}
