package app

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/recovery"
)

func TestMoments(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-24 10:31:07+01":        "2026-11-24T09:31:07Z",
		"2026-11-24 10:31:07 +0100":     "2026-11-24T09:31:07Z",
		"2026-11-24 10:31:07.25-03:30":  "2026-11-24T14:01:07.25Z",
		"2026-11-24T10:31:07+01:00":     "2026-11-24T09:31:07Z",
		"2026-11-24T10:31:07Z":          "2026-11-24T10:31:07Z",
		"2026-11-24 10:31:07Z":          "2026-11-24T10:31:07Z",
		"2026-11-24 10:31:07":           "add its offset from UTC, as '2026-11-24 10:31:07+01', or Z for UTC",
		"2026-11-24T10:31:07.5":         "add its offset from UTC, as '2026-11-24 10:31:07.5+01', or Z for UTC",
		"":                              "is no time with its offset from UTC",
		"yesterday":                     "is no time with its offset from UTC",
		"2026-11-24":                    "is no time with its offset from UTC",
		"2026-11-24 10:31+01":           "is no time with its offset from UTC",
		"2026-11-24 10:31:07 CET":       "is no time with its offset from UTC",
		"2026-11-24 10:31:07+1":         "is no time with its offset from UTC",
		"2026-02-30 10:31:07+01":        "is no time that there is",
		"2026-11-24 25:31:07Z":          "is no time that there is",
		"2026-11-24 10:31:07+24":        "is no time that there is",
		"2026-11-24 10:31:07+01\n":      "is no time with its offset from UTC",
		"2026-11-24 10:31:07+01 --wait": "is no time with its offset from UTC",
	} {
		at, err := Moment("--at", text)
		switch {
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %s", text, err, want)
		case err == nil && recovery.Text(*at) != want:
			t.Errorf("%q: %s, want %s", text, at, want)
		}
	}
}

// A moment that is taken is written as the same moment.
func FuzzMoment(f *testing.F) {
	for _, seed := range []string{"2026-11-24 10:31:07+01", "2026-11-24T10:31:07.123456Z", "2026-11-24 10:31:07", "0001-01-01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := Moment("--at", text)
		if err != nil {
			return
		}
		if again, err := Moment("--at", recovery.Text(*at)); err != nil || !again.Equal(*at) {
			t.Errorf("%q is %s, and that is %v (%v)", text, at, again, err)
		}
	})
}
