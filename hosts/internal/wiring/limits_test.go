package wiring

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/ratelimit"
)

func TestRates(t *testing.T) {
	limits := check.Must((&Front{RateLimits: map[string]string{"read": "5/1s", "reservation": "1/24h"}}).Rates())(t)
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

func TestRatesNamesWhatIsWrong(t *testing.T) {
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
		f := Front{RateLimits: map[string]string{name: value}}
		if _, err := f.Rates(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
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
