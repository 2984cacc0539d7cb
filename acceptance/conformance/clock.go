package conformance

import (
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/ports"
)

// MovableClock is a ports.Clock that a development host can move forward.
type MovableClock struct {
	ports.Clock
	Advance func(time.Duration)
}

// Clock is the suite of ports.Clock.
func Clock(t *testing.T, newClock func() MovableClock) {
	t.Run("shows UTC at the precision of PostgreSQL", func(t *testing.T) {
		c := newClock()
		for range 100 {
			now := c.Now()
			if now.Location() != time.UTC || now.Nanosecond()%1000 != 0 {
				t.Fatalf("%v is not in UTC at microsecond precision", now)
			}
			if now != now.Round(0) {
				t.Fatalf("%v carries a monotonic reading, which a stored time does not", now)
			}
		}
	})
	t.Run("never goes back", func(t *testing.T) {
		c := newClock()
		last := c.Now()
		for _, d := range []time.Duration{0, time.Microsecond, time.Hour, 0, time.Nanosecond} {
			c.Advance(d)
			now := c.Now()
			if now.Before(last.Add(d.Truncate(time.Microsecond))) {
				t.Fatalf("%v, after %v was advanced by %v", now, last, d)
			}
			last = now
		}
	})
	t.Run("moves by what it is advanced", func(t *testing.T) {
		c := newClock()
		before := c.Now()
		c.Advance(7 * 24 * time.Hour)
		if moved := c.Now().Sub(before); moved < 7*24*time.Hour || moved > 7*24*time.Hour+time.Minute {
			t.Errorf("a week forward moved it by %v", moved)
		}
	})
	t.Run("tells by how much it was moved", func(t *testing.T) {
		c := newClock()
		before := c.Now().Add(-c.Moved())
		c.Advance(7 * 24 * time.Hour)
		if unmoved := c.Now().Add(-c.Moved()).Sub(before); unmoved < -time.Second || unmoved > time.Minute {
			t.Errorf("the machine's clock went on by %v", unmoved)
		}
	})
	t.Run("serves many at once", func(t *testing.T) {
		c := newClock()
		before := c.Now()
		var running sync.WaitGroup
		for range 8 {
			running.Go(func() {
				for range 100 {
					c.Advance(time.Second)
					_ = c.Now()
				}
			})
		}
		running.Wait()
		if moved := c.Now().Sub(before); moved < 800*time.Second {
			t.Errorf("800 advances of a second moved it by %v", moved)
		}
	})
}
