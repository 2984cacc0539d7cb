package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/health"
)

// Age says how long ago a time was, in the largest unit that has passed, or how long it is until then, to the nearest of its
// largest unit: what was promised for seven days is due in 7d, also a moment after that.
func Age(t, now time.Time) string {
	d := t.Sub(now)
	switch {
	case d <= 0:
		return Lasting(-d) + " ago"
	case d < time.Minute:
		d = d.Round(time.Second)
	case d < time.Hour:
		d = d.Round(time.Minute)
	case d < 2*day:
		d = d.Round(time.Hour)
	default:
		d = d.Round(day)
	}
	return "in " + Lasting(d)
}

const day = 24 * time.Hour

// Lasting is a duration in its largest unit.
func Lasting(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Exactly is a duration in all its units, without those behind the last that counts.
func Exactly(d time.Duration) string {
	text := d.String()
	for _, none := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, none) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Bytes is a number of bytes in its largest unit of 1,024.
func Bytes(n int64) string { return strings.Replace(health.Pretty(n), ".0 ", " ", 1) }
