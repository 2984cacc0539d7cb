package conformance_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/conformance"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/ports"
)

func TestClock(t *testing.T) {
	t.Run("system", func(t *testing.T) {
		conformance.Clock(t, func() conformance.MovableClock {
			c := &system.Clock{}
			return conformance.MovableClock{Clock: c, Advance: func(d time.Duration) { c.Advance(d) }}
		})
	})
	t.Run("fakeclock", func(t *testing.T) {
		conformance.Clock(t, func() conformance.MovableClock {
			c := fakeclock.New()
			return conformance.MovableClock{Clock: c, Advance: func(d time.Duration) { c.Advance(d) }}
		})
	})
}

func TestEntropy(t *testing.T) {
	t.Run("system", func(t *testing.T) {
		conformance.Entropy(t, func() ports.Entropy { return system.Entropy{} })
	})
	t.Run("fakeentropy", func(t *testing.T) {
		conformance.Entropy(t, func() ports.Entropy { return fakeentropy.New() })
	})
}

func TestFakeEntropyIsForeseeable(t *testing.T) {
	one, same, other := fakeentropy.Seeded(7), fakeentropy.Seeded(7), fakeentropy.Seeded(8)
	for range 10 {
		a, b, c := one.Base62(40), same.Base62(40), other.Base62(40)
		if a != b || a == c {
			t.Fatalf("%q and %q come from one seed, %q from another", a, b, c)
		}
	}
}
