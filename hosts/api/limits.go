package api

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// checkConnections returns an error that names the flag of a bound that lets nobody in.
func checkConnections(l serve.Limits) error {
	if l.Connections < 1 {
		return errors.New("--max-connections must be 1 or more")
	}
	if l.ConnectionsPerAddress < 1 {
		return errors.New("--max-connections-per-address must be 1 or more")
	}
	return nil
}

// parseLimits reads "class=count/period". A class that is not named keeps its default.
func parseLimits(texts map[string]string) (map[ratelimit.Class]ratelimit.Limit, error) {
	limits := ratelimit.Defaults()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		class := ratelimit.Class(name)
		if _, known := limits[class]; !known {
			return nil, fmt.Errorf("--rate-limits: no class is named %q", name)
		}
		limit, err := parseLimit(texts[name])
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

// Bounds of the lowest rate of downloads. Agents break off an API host that takes nothing for minutes; with socket buffers in
// between, that is what a client below the lower bound looks like to them.
const (
	leastDownloadRate = 16 << 10
	mostDownloadRate  = 1 << 30
)

// checkDownloads names the setting that makes downloads impossible.
func (s *Settings) checkDownloads() error {
	switch {
	case s.DownloadsPerAccount < 1:
		return errors.New("--downloads-per-account must be at least 1")
	case s.HTTP.Download.Rate < leastDownloadRate || s.HTTP.Download.Rate > mostDownloadRate:
		return fmt.Errorf("--download-min-rate must be from %d to %d bytes a second", leastDownloadRate, mostDownloadRate)
	}
	return nil
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
