package ports

import "time"

// Clock tells the time. It is the only source of time: SQL never calls now(), so moving the clock moves the whole service.
type Clock interface {
	// Now returns the time in UTC, at microsecond precision (PostgreSQL's).
	Now() time.Time
}
