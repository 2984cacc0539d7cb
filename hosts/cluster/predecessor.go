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
	await(ctx, predecessorLimit, func() bool { return !p.inUse() })
}

// await asks again and again whether something is so, until it is, and for no longer than a limit.
func await(ctx context.Context, limit time.Duration, so func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// inUse says whether the process that postmaster.pid names is alive and works in the data folder, as a postmaster does. Where the
// system has no /proc, being alive is enough; where it has one, a process that has ended works nowhere.
func (p *Postgres) inUse() bool {
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
	return p.worksHere(first)
}

// worksHere says whether a process works in the data folder. The system names the folder without symbolic links.
func (p *Postgres) worksHere(pid string) bool {
	here, err := filepath.EvalSymlinks(p.dataDir())
	if err != nil {
		return false
	}
	works, err := os.Readlink(filepath.Join("/proc", pid, "cwd"))
	return err == nil && works == here
}

// portPatience is how long the start of a PgBouncer waits for its port, which its predecessor may just be leaving.
const portPatience = time.Second

// awaitPort is CheckPort, repeated for up to portPatience.
func awaitPort(ctx context.Context, host string, port int) (err error) {
	var inUse *PortInUseError
	await(ctx, portPatience, func() bool {
		err = CheckPort(host, port)
		return !errors.As(err, &inUse)
	})
	return err
}
