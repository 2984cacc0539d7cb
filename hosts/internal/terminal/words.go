package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/health"
)

// Age says how long ago a time was, or how long it is until then, in its largest unit.
func Age(t, now time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		return "in " + Lasting(-d)
	}
	return Lasting(d) + " ago"
}

// Lasting is a duration in its largest unit.
func Lasting(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Bytes is a number of bytes in its largest unit of 1,024.
func Bytes(n int64) string { return strings.Replace(health.Pretty(n), ".0 ", " ", 1) }
