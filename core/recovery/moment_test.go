package recovery

import (
	"errors"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

const (
	noOffset = "needs its offset from UTC, as in "
	noTime   = "must be a time with its offset from UTC, as 2026-03-01T12:30:00+01:00"
)

func TestMoments(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-24T10:31:07+01:00":           "2026-11-24T09:31:07Z",
		"2026-11-24T10:31:07Z":                "2026-11-24T10:31:07Z",
		"2026-11-24T10:31:07-00:00":           "2026-11-24T10:31:07Z",
		"2026-11-24T10:31:07.1234567891Z":     "2026-11-24T10:31:07.123456Z",
		"9999-12-31T23:59:59Z":                "9999-12-31T23:59:59Z",
		"2026-11-24T10:31:07":                 noOffset + "2026-11-24T10:31:07Z or 2026-11-24T10:31:07+01:00",
		"2026-11-24T10:31:07.5":               noOffset + "2026-11-24T10:31:07.5Z or 2026-11-24T10:31:07.5+01:00",
		"":                                    noTime,
		"now":                                 noTime,
		"1795512667":                          noTime,
		"2026-11-24":                          noTime,
		"2026-11-24 10:31:07Z":                noTime,
		"2026-11-24T10:31Z":                   noTime,
		"2026-11-24T1:31:07Z":                 noTime,
		"2026-11-24T10:31:07,5Z":              noTime,
		"2026-11-24T10:31:07+24:00":           noTime,
		"2026-11-24T10:31:07+1":               noTime,
		"2026-11-24T10:31:07CET":              noTime,
		"2026-11-24T10:31:07+01:00[CET]":      noTime,
		"2026-02-29T10:31:07Z":                noTime,
		"2026-13-01T10:31:07Z":                noTime,
		"2026-11-24T24:00:00Z":                noTime,
		"2016-12-31T23:59:60Z":                noTime,
		"12026-11-24T10:31:07Z":               noTime,
		"0000-01-01T00:00:00Z":                noTime,
		"0001-01-01T00:00:00+01:00":           noTime,
		"9999-12-31T23:59:59-01:00":           noTime,
		"2026-11-24T10:31:07Z ":               noTime,
		"2026-11-24T10:31:07Z\n":              noTime,
		"2026-11-24T10:31:07Z; DROP DATABASE": noTime,
	} {
		at, err := Parse(text)
		got := at.Format(time.RFC3339Nano)
		var no *fault.Error
		if errors.As(err, &no) {
			got = no.Details[0].Issue
		}
		if got != want || err != nil && (!fault.Has(err, fault.ValidationError) || no.Details[0].Field != Field) {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}

// What is accepted is a moment that every part of the service writes and reads back as the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"2026-11-24T10:31:07.5+01:00", "2026-11-24T10:31:07", "0001-01-01T00:00:00Z", "", "Z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := Parse(text)
		if err != nil {
			return
		}
		written := Text(at)
		if again, err := Parse(written); err != nil || !again.Equal(at) || again.Location() != time.UTC {
			t.Errorf("%q is %s, and that is %s (%v)", text, written, again, err)
		}
	})
}

// fieldOf is what a refusal is about.
func fieldOf(err error) string {
	var no *fault.Error
	if !errors.As(err, &no) || len(no.Details) == 0 {
		return ""
	}
	return no.Details[0].Field
}
