package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// predecessorLimit is how long a start waits for what the last caller left: a caller that was killed has its PostgreSQL shut
// down behind it, which takes a moment.
const predecessorLimit = 10 * time.Second

// awaitPredecessor returns when no postmaster holds the data folder any more, or after predecessorLimit. It does not decide
// whether that is safe: PostgreSQL itself refuses to start if one still does.
func (p *Postgres) awaitPredecessor(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, predecessorLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for p.held() {
		select {
		case <-limit.Done():
			return
		case <-tick.C:
		}
	}
}

// held says whether the process that postmaster.pid names is alive and works in the data folder, as a postmaster does. Where the
// system has no /proc, being alive is enough; where it has one, a process that has ended works nowhere.
func (p *Postgres) held() bool {
	text, err := os.ReadFile(filepath.Join(p.dataDir(), "postmaster.pid"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || pid <= 1 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	if _, err := os.Stat("/proc/self/cwd"); err != nil {
		return true
	}
	works, err := os.Readlink(filepath.Join("/proc", first, "cwd"))
	return err == nil && works == p.dataDir()
}

// portPatience is how long the start of a PgBouncer waits for its port, which its predecessor may just be leaving.
const portPatience = time.Second

// awaitPort is CheckPort, repeated for up to portPatience.
func awaitPort(ctx context.Context, host string, port int) error {
	limit, cancel := context.WithTimeout(ctx, portPatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := CheckPort(host, port)
		var inUse *PortInUseError
		if !errors.As(err, &inUse) {
			return err
		}
		select {
		case <-limit.Done():
			return err
		case <-tick.C:
		}
	}
}
