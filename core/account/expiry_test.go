package account

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

func TestExpiries(t *testing.T) {
	now := time.Date(2026, time.November, 23, 12, 0, 0, 123_456_000, time.UTC)
	for text, want := range map[string]time.Time{
		"90d": now.Add(90 * 24 * time.Hour), "12h": now.Add(12 * time.Hour), "1h30m": now.Add(90 * time.Minute),
		"2027-03-01T00:00:00Z":      time.Date(2027, time.March, 1, 0, 0, 0, 0, time.UTC),
		"2027-03-01T02:00:00+02:00": time.Date(2027, time.March, 1, 0, 0, 0, 0, time.UTC),
		"3660d":                     now.Add(3660 * 24 * time.Hour), "1ms": now.Add(time.Millisecond),
	} {
		e, err := ParseExpiry(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if end, err := e.Ends(now); err != nil || !end.Equal(want) {
			t.Errorf("%s: %v, %v; want %s", text, end, err, want)
		}
	}
	never, err := ParseExpiry("never")
	if end, endErr := never.Ends(now); err != nil || endErr != nil || end != nil {
		t.Errorf("never: %v, %v, %v", end, err, endErr)
	}
	for _, text := range []string{
		"", "0d", "-1d", "+1d", "0", "0h", "-1h", "3661d", "65536d", "1.5d", "d", "90", "90 d", "1y", "tomorrow", "2027-03-01",
		"99999h", "9999999999999999999h",
	} {
		if e, err := ParseExpiry(text); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %+v, %v", text, e, err)
		}
	}
	for _, at := range []time.Time{now, now.Add(-time.Second), now.Add(time.Nanosecond), now.Add(3661 * 24 * time.Hour)} {
		if end, err := (Expiry{At: at}).Ends(now); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%s: %v, %v", at, end, err)
		}
	}
}

// Whatever is accepted ends in the future, or never.
func FuzzParseExpiry(f *testing.F) {
	for _, text := range []string{"never", "90d", "12h", "2027-03-01T00:00:00Z", "-1d", "0001-01-01T00:00:00Z"} {
		f.Add(text)
	}
	now := time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseExpiry(text)
		if err != nil {
			return
		}
		end, err := e.Ends(now)
		if err == nil && (end == nil) != (text == "never") || end != nil && !end.After(now) {
			t.Errorf("%q: %v, %v", text, end, err)
		}
	})
}
