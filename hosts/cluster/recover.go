package cluster

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Recover starts a cluster that has ended by itself, on the same port. It ends what the postmaster has left, and gives the
// recovery of the data as long as it needs: the end of the context is the only limit. After that it is as Start.
func (p *Postgres) Recover(ctx context.Context) error {
	if p.process.running() {
		return errors.New("PostgreSQL runs already")
	}
	if err := p.closeLog(); err != nil {
		return err
	}
	p.endOrphans(ctx)
	return p.start(ctx, math.MaxInt64)
}

// orphanPatience is how long the sessions of a dead postmaster may take to notice and to end. Most do at once; one that computes
// does not look before it has finished.
const orphanPatience = time.Second

// endOrphans ends the sessions of a dead postmaster: as long as one is left, PostgreSQL refuses to start.
func (p *Postgres) endOrphans(ctx context.Context) {
	gone := func() bool { return len(p.orphans()) == 0 }
	if await(ctx, orphanPatience, gone) {
		return
	}
	for _, pid := range p.orphans() {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one that cannot be ended makes PostgreSQL refuse, and say so
	}
	await(ctx, predecessorLimit, gone)
}

// orphans lists the processes of PostgreSQL that work in the data folder, unless a postmaster holds it: then they are that one's.
// Where the system has no /proc, none is found.
func (p *Postgres) orphans() (found []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err == nil && p.worksHere(entry.Name()) && p.isPostgres(entry.Name()) {
			found = append(found, pid)
		}
	}
	if p.inUse() {
		return nil
	}
	return found
}

// isPostgres tells PostgreSQL's processes from others in the same folder, such as the shell of somebody who looks around there.
func (p *Postgres) isPostgres(pid string) bool {
	name, err := os.ReadFile(filepath.Join("/proc", pid, "comm"))
	return err == nil && strings.TrimSpace(string(name)) == filepath.Base(p.options.Tools.Postgres)
}
