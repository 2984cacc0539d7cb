// Package fakeclock implements ports.Clock for tests and scenarios: it stands still until it is moved.
package fakeclock

import (
	"sync"
	"time"
)

// Clock implements ports.Clock. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Start is where New puts the clock.
var Start = time.Date(2026, time.January, 5, 9, 30, 0, 0, time.UTC)

// New makes a clock that stands at Start.
func New() *Clock { return At(Start) }

// At makes a clock that stands at t.
func At(t time.Time) *Clock { return &Clock{now: exact(t)} }

// Now returns where the clock stands, in UTC and at microsecond precision.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock and returns where it stands now. It never goes back: a negative d moves nothing.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = exact(c.now.Add(max(0, d)))
	return c.now
}

// Moved implements ports.Clock: the machine's clock is right, wherever this one stands.
func (c *Clock) Moved() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.now)
}

// Jump moves the clock, also back, as that of a machine may be.
func (c *Clock) Jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = exact(c.now.Add(d))
}

func exact(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
