package ports

import "time"

// Clock tells the time. It is the only source of time: SQL never calls now(), so that a moved clock moves everything.
type Clock interface {
	// Now returns the time in UTC, at microsecond precision (PostgreSQL's).
	Now() time.Time
}
