package ports

import "time"

// Clock tells the time. It is the only source of time: SQL never calls now() for it, so moving the clock moves the whole service.
type Clock interface {
	// Now returns the time in UTC, at microsecond precision (PostgreSQL's).
	Now() time.Time
	// Moved is by how much Now was moved on purpose, in development and in tests: without that, it would be what the machine's
	// clock shows.
	Moved() time.Duration
}
