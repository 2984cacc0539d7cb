package linear

import (
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"
)

// found bounds in how many histories a planted bug has to show. The rarest shows in about one of thirty.
const found = 400

// bugs are planted in the parts around the use cases: each keeps every interface, and breaks one promise behind it.
var bugs = map[string]func(*rand.Rand, parts) parts{
	"a database's lock does not hold":                     lockThatDoesNotHold,
	"idempotency keys are looked up outside the lock":     keysOutsideTheLock,
	"the agent applies a stale generation":                staleGenerations,
	"a rotation is reported before the agent has done it": earlyProof,
	"a removal forgets the revocation":                    forgottenRevocation,
	"a reveal reads the password before, the rest after":  tornReveal,
}

// legacyBugs are planted around databases with a single login, whose operations may not end where a lock does not hold.
var legacyBugs = map[string]func(*rand.Rand, parts) parts{
	"a role is admitted without CONNECT":   ownGrant,
	"a reconciliation makes up an outcome": madeUpOutcome,
	"an opt-in is done that is half made":  halfMade,
}

// Without this, a checker that finds nothing says nothing.
func TestPlantedBugsAreFound(t *testing.T) {
	for name, plant := range bugs {
		t.Run(name, func(t *testing.T) { isFound(t, setting{plant: plant}) })
	}
	for name, plant := range legacyBugs {
		t.Run("single login: "+name, func(t *testing.T) { isFound(t, setting{plant: plant, legacy: true}) })
	}
}

func isFound(t *testing.T, s setting) {
	t.Helper()
	for seed := uint64(1); seed <= found; seed++ {
		if run(t, seed, s, clients, calls).check() == porcupine.Illegal {
			t.Logf("found with seed %d", seed)
			return
		}
	}
	t.Fatalf("%d histories do not show it", found)
}
