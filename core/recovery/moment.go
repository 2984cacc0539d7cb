package recovery

import (
	"regexp"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// Field is what requests call the moment that they ask for.
const Field = "pointInTime"

// Parse reads a moment as RFC 3339 writes it, with its offset: a local time alone is a moment in every zone. It is exact to
// PostgreSQL's microsecond; what is finer is cut off. VALIDATION_ERROR on "pointInTime".
func Parse(text string) (time.Time, error) { return ParseAs(Field, text) }

// ParseAs is Parse for a field of another name.
func ParseAs(field, text string) (time.Time, error) {
	at, ok := parse(text)
	if _, local := parse(text + "Z"); local {
		return at, fault.Invalid(field, "needs its offset from UTC, as in %sZ or %s+01:00", text, text)
	}
	if !ok {
		return at, fault.Invalid(field, "must be a time with its offset from UTC, as 2026-03-01T12:30:00+01:00")
	}
	return at, nil
}

// Text is a moment as Parse reads it, in UTC: the same moment is always the same text.
func Text(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// written is the form; package time reads some others too, and offsets of any size.
var written = regexp.MustCompile(`^[0-9-]{10}T[0-9:]{8}(\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)

// parse refuses years that cannot be written in UTC.
func parse(text string) (at time.Time, ok bool) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || !written.MatchString(text) {
		return time.Time{}, false
	}
	at = at.UTC().Truncate(time.Microsecond)
	return at, at.Year() >= 1 && at.Year() <= 9999
}
