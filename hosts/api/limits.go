package api

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/core/controlplane/base"
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
