package terminal_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

const day = 24 * time.Hour

// What was is not older than it is; what will be is as far as was promised.
func TestAges(t *testing.T) {
	now := time.Date(2026, 1, 5, 9, 30, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "0s ago", -59*time.Second - 900*time.Millisecond: "59s ago", -time.Minute: "1m ago", -119 * time.Minute: "1h ago",
		-2*day + time.Second: "47h ago", -7*day + time.Second: "6d ago",
		time.Second: "in 1s", 59*time.Second + 600*time.Millisecond: "in 1m", 59*time.Minute + 59*time.Second: "in 1h",
		89 * time.Second: "in 1m", 91 * time.Second: "in 2m", day - time.Second: "in 24h", 2*day - time.Second: "in 2d",
		7*day - time.Second: "in 7d", 7*day - 13*time.Hour: "in 6d",
	} {
		if got := terminal.Age(now.Add(d), now); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

func TestExactDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		500 * time.Millisecond: "500ms", 10 * time.Second: "10s", time.Minute: "1m", 90 * time.Second: "1m30s", 10 * time.Minute: "10m",
		time.Hour: "1h", 70 * time.Minute: "1h10m", time.Hour + time.Second: "1h0m1s", 20 * time.Hour: "20h",
	} {
		if got := terminal.Exactly(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
