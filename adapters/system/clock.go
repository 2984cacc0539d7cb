package system

import (
	"sync/atomic"
	"time"
)

// Clock implements ports.Clock with the machine's clock. It is safe for concurrent use.
type Clock struct{ ahead atomic.Int64 }

// NewClock makes a clock that shows the machine's time.
func NewClock() *Clock { return &Clock{} }

// Now returns the time in UTC, at microsecond precision.
func (c *Clock) Now() time.Time {
	return time.Now().UTC().Add(time.Duration(c.ahead.Load())).Truncate(time.Microsecond)
}

// Moved implements ports.Clock.
func (c *Clock) Moved() time.Duration { return time.Duration(c.ahead.Load()) }

// Advance moves the clock forward permanently, for the development host's clock route, and returns how far it is ahead of the
// machine's clock. A negative d has no effect.
func (c *Clock) Advance(d time.Duration) time.Duration {
	return time.Duration(c.ahead.Add(int64(max(0, d))))
}
