package usage

import (
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// Period is a stretch of time whose samples are asked for: of the hours that begin in it.
type Period struct{ From, To time.Time }

// Usual is how long a period is where nobody says when it begins, and Longest how long it is at most: a month.
const (
	Usual   = 30 * 24 * time.Hour
	Longest = 31 * 24 * time.Hour
)

// ParsePeriod reads two times, or days, which begin at midnight in UTC. Without an end it ends now, and without a beginning it is
// Usual. VALIDATION_ERROR on "from" or "to".
func ParsePeriod(from, to string, now time.Time) (p Period, err error) {
	if p.To, err = parseTime("to", to, now); err != nil {
		return Period{}, err
	}
	if p.From, err = parseTime("from", from, p.To.Add(-Usual)); err != nil {
		return Period{}, err
	}
	p.From = p.From.Truncate(time.Hour)
	return p, p.Check()
}

// Check returns VALIDATION_ERROR on "to" where the period is too long, or does not end after it begins.
func (p Period) Check() error {
	if length := p.To.Sub(p.From); length <= 0 || length > Longest+time.Hour {
		return fault.Invalid("to", "must be after from, and at most %d days", Longest/(24*time.Hour))
	}
	return nil
}

func parseTime(field, text string, none time.Time) (time.Time, error) {
	if text == "" {
		return none.UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil && at.UTC().Year() > 0 && at.UTC().Year() < 10_000 {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fault.Invalid(field, "must be a time as 2026-11-01T00:00:00Z, or a day as 2026-11-01")
}
