package account

import (
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// Expiry says when a key is to end: after a time, at a time, or never, which is the zero value.
type Expiry struct {
	After time.Duration
	At    time.Time
}

// longestLife bounds the life of a key that has an end, and keeps out a slip that would only show later.
const longestLife = 3660 * day

const day = 24 * time.Hour

// ParseExpiry reads "never", a time from now as "90d" or "12h", or a time as "2027-03-01T00:00:00Z". VALIDATION_ERROR on
// "expires".
func ParseExpiry(text string) (Expiry, error) {
	if text == "never" {
		return Expiry{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if at.IsZero() {
			return Expiry{}, errLife()
		}
		return Expiry{At: at.UTC()}, nil
	}
	after, err := parseLife(text)
	switch {
	case err != nil:
		return Expiry{}, fault.Invalid("expires", "must be never, a time from now as 90d or 12h, or a time as 2027-03-01T00:00:00Z")
	case after <= 0 || after > longestLife:
		return Expiry{}, errLife()
	}
	return Expiry{After: after}, nil
}

func parseLife(text string) (time.Duration, error) {
	number, inDays := strings.CutSuffix(text, "d")
	if !inDays {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseUint(number, 10, 16)
	return time.Duration(days) * day, err
}

func errLife() error {
	return fault.Invalid("expires", "must be in the future, and at most %d days away", longestLife/day)
}

// Ends is the end of a key whose life is decided now; nil for none. VALIDATION_ERROR on "expires" where it has passed.
func (e Expiry) Ends(now time.Time) (*time.Time, error) {
	end := e.At
	switch {
	case e == Expiry{}:
		return nil, nil
	case e.After != 0:
		end = now.Add(e.After)
	}
	if end = end.UTC().Truncate(time.Microsecond); !end.After(now) || end.After(now.Add(longestLife)) {
		return nil, errLife()
	}
	return &end, nil
}
