package api

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/core/ratelimit"
)

func TestParseLimits(t *testing.T) {
	limits := check.Must(parseLimits(map[string]string{"read": "5/1s", "reservation": "1/24h"}))(t)
	for class, want := range map[ratelimit.Class]ratelimit.Limit{
		ratelimit.Read:        {Count: 5, Period: time.Second},
		ratelimit.Reservation: {Count: 1, Period: 24 * time.Hour},
		ratelimit.Write:       ratelimit.Defaults()[ratelimit.Write],
	} {
		if limits[class] != want {
			t.Errorf("%s is %v, want %v", class, limits[class], want)
		}
	}
}

func TestParseLimitsNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"sing=1/1m":  "sing",
		"read=":      "read",
		"read=0/1m":  "read",
		"read=-1/1m": "read",
		"read=5":     "read",
		"read=5/0s":  "read",
		"read=5/x":   "read",
		"read=9/1ns": "read",

		"reservation=1001/1h": "reservation",
	} {
		name, value, _ := strings.Cut(text, "=")
		if _, err := parseLimits(map[string]string{name: value}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestABoundThatLetsNobodyInIsNamed(t *testing.T) {
	for flag, change := range map[string]func(*serve.Limits){
		"":                              func(*serve.Limits) {},
		"--max-connections ":            func(l *serve.Limits) { l.Connections = 0 },
		"--max-connections-per-address": func(l *serve.Limits) { l.ConnectionsPerAddress = -1 },
	} {
		limits := serve.DefaultLimits()
		change(&limits)
		if err := checkConnections(limits); (err == nil) != (flag == "") || (err != nil && !strings.Contains(err.Error(), flag)) {
			t.Errorf("%q: %v", flag, err)
		}
	}
}

func TestTenTimesLeavesReservations(t *testing.T) {
	limits := TenTimes(ratelimit.Defaults())
	for class, l := range ratelimit.Defaults() {
		want := l.Count * 10
		if class == ratelimit.Reservation {
			want = l.Count
		}
		if limits[class].Count != want || limits[class].Period != l.Period {
			t.Errorf("%s is %v", class, limits[class])
		}
	}
}

func TestDownloadsThatCannotBeAreRefused(t *testing.T) {
	for flag, wrong := range map[string][]string{
		"downloads-per-account": {"0", "-1"}, "download-min-rate": {"0", "-1", "16383", "1073741825"},
	} {
		for _, value := range wrong {
			cmd := Command()
			cmd.SetArgs([]string{"--metadata-url", "postgres://x", "--keyring-file", "x", "--" + flag, value})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "--"+flag+" must be") {
				t.Errorf("--%s %s: %v", flag, value, err)
			}
		}
	}
}
