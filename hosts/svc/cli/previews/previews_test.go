package previews

import (
	"errors"
	"testing"

	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func TestLeasesAreWholeHours(t *testing.T) {
	for text, want := range map[string]int{
		"24": 24, "24h": 24, "1": 1, "72h": 72, "120m": 2, "1h60m": 2,
		"": 0, "0": 0, "0h": 0, "-1": 0, "-2h": 0, "73": 0, "73h": 0, "90m": 0, "1.5h": 0, "1.5": 0, "h": 0, "a day": 0,
		"24h1ns": 0, "99999999999999999999": 0, "9223372036854775807": 0,
	} {
		hours, err := wantHours(text)
		if wrong := errors.As(err, new(app.UsageError)); hours != want || wrong != (want == 0) {
			t.Errorf("%q: %d, %v", text, hours, err)
		}
	}
}
