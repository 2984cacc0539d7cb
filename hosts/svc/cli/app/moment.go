package app

import (
	"regexp"
	"time"

	"github.com/pgherd/pgherd/core/recovery"
)

// momentPattern are times as RFC 3339 writes them, and as PostgreSQL and date do: with a blank, and with an offset in hours.
var momentPattern = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?)(?: ?(?:(Z)|([+-]\d\d)(?::?(\d\d))?))?$`)

// Moment reads the moment that a flag names. A local time is refused: who reads it later, or elsewhere, takes it for another one.
func Moment(flag, text string) (*time.Time, error) {
	found := momentPattern.FindStringSubmatch(text)
	if found == nil {
		return nil, Usage("%s: %q is no time with its offset from UTC, as '2026-03-01 12:30:00+01' or 2026-03-01T11:30:00Z", flag, text)
	}
	day, clock, offset := found[1], found[2], found[3]
	switch {
	case found[4] != "":
		offset = found[4] + ":" + First(found[5], "00")
	case offset == "":
		return nil, Usage("%s: %q is a local time: add its offset from UTC, as '%s %s+01', or Z for UTC", flag, text, day, clock)
	}
	at, err := recovery.Parse(day + "T" + clock + offset)
	if err != nil {
		return nil, Usage("%s: %q is no time that there is", flag, text)
	}
	return &at, nil
}
