package api

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

// checkConnections returns an error that names the flag of a bound that lets nobody in, that leaves nothing to others, or that
// the process has no files for.
func checkConnections(l serve.Limits) error {
	err := slot.CheckShare("--max-connections-per-address", l.ConnectionsPerAddress, "--max-connections", l.Connections)
	if err != nil {
		return err
	}
	if most := MostConnections(); l.Connections > most {
		return fmt.Errorf("%s is %d, and this process may have %d files open at a time, %d of them for other things than clients: "+
			"allow it %d (LimitNOFILE= of the unit, or ulimit -n), or give a lower number of connections",
			settings.Flag("max-connections"), l.Connections, most+ownFiles, ownFiles, l.Connections+ownFiles)
	}
	return nil
}

// ownFiles is how many files the host keeps for agents, the metadata, issuers of CI tokens and itself.
const ownFiles = 1024

// MostConnections is how many connections of clients this process has files for.
func MostConnections() int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return math.MaxInt // nobody knows: accept says when there are none left
	}
	return int(min(files.Cur, math.MaxInt32)) - ownFiles
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
	const all = base.DefaultDownloadsPerServer
	err := slot.CheckShare("--downloads-per-account", s.DownloadsPerAccount, "the downloads of a database server", all)
	switch {
	case err != nil:
		return err
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
