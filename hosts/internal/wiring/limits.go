package wiring

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/ratelimit"
)

// Rates reads the rate limits, "class=count/period". A class that is not named keeps its default.
func (f *Front) Rates() (map[ratelimit.Class]ratelimit.Limit, error) {
	limits := ratelimit.Defaults()
	for _, name := range slices.Sorted(maps.Keys(f.RateLimits)) {
		class := ratelimit.Class(name)
		if _, known := limits[class]; !known {
			return nil, fmt.Errorf("--rate-limits: no class is named %q", name)
		}
		limit, err := parseLimit(f.RateLimits[name])
		if err != nil {
			return nil, fmt.Errorf("--rate-limits: %s: %w", name, err)
		}
		if class.Exact() && limit.Count > ratelimit.MostExact {
			return nil, fmt.Errorf("--rate-limits: %s: the count must be at most %d", name, ratelimit.MostExact)
		}
		limits[class] = limit
	}
	return limits, nil
}

func parseLimit(text string) (ratelimit.Limit, error) {
	count, period, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 {
		return ratelimit.Limit{}, fmt.Errorf("%q is not count/period, such as 600/1m", text)
	}
	d, err := time.ParseDuration(period)
	if err != nil || d < time.Millisecond || d/time.Duration(n) == 0 {
		return ratelimit.Limit{}, fmt.Errorf("%q is not count/period, such as 600/1m", text)
	}
	return ratelimit.Limit{Count: n, Period: d}, nil
}

// TenTimes returns the development host's limits: ten times as high, except for restore reservations.
func TenTimes(limits map[ratelimit.Class]ratelimit.Limit) map[ratelimit.Class]ratelimit.Limit {
	for class, l := range limits {
		if class != ratelimit.Reservation {
			limits[class] = ratelimit.Limit{Count: l.Count * 10, Period: l.Period}
		}
	}
	return limits
}
