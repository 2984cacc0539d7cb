package usage

import (
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// Period is a stretch of time whose samples are asked for: of the hours that begin in it.
type Period struct{ From, To time.Time }

// Longest is the longest period that is shown by the hour: a month.
const Longest = 31 * day

// lengths are of periods: usual is how long one is where nobody says when it begins, and longest how long it is at most, without
// the rest of the first stretch.
var lengths = map[Resolution]struct{ usual, longest, stretch time.Duration }{
	Hourly:  {30 * day, Longest, time.Hour},
	Daily:   {30 * day, 400 * day, day},
	Monthly: {365 * day, 400 * day, 31 * day},
}

// ParsePeriod reads two times, or days, which begin at midnight in UTC. Without an end it ends now, and without a beginning it is
// as long as usual; it begins with a whole stretch. VALIDATION_ERROR on "from" or "to".
func ParsePeriod(from, to string, by Resolution, now time.Time) (p Period, err error) {
	if p.To, err = parseTime("to", to, now); err != nil {
		return Period{}, err
	}
	if p.From, err = parseTime("from", from, p.To.Add(-lengths[by].usual)); err != nil {
		return Period{}, err
	}
	p.From = by.begin(p.From)
	return p, p.Check(by)
}

// Check returns VALIDATION_ERROR on "to" where the period is too long for a resolution, or does not end after it begins.
func (p Period) Check(by Resolution) error {
	of := lengths[by]
	if length := p.To.Sub(p.From); length <= 0 || length > of.longest+of.stretch {
		return fault.Invalid("to", "must be after from, and at most %d days", of.longest/day)
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
