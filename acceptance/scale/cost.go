package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/acceptance/proc"
)

// cost is what the hosts and the metadata's PostgreSQL have taken so far.
type cost struct {
	hosts, metadata time.Duration // of processors
	statements      int
	wal             int // bytes
}

func (c cost) since(before cost) cost {
	return cost{c.hosts - before.hosts, c.metadata - before.metadata, c.statements - before.statements, c.wal - before.wal}
}

// spent is the cost of hosts from their start on, and of the metadata from theirs.
func (w *world) spent(ctx context.Context, h hosts) (c cost, err error) {
	for _, one := range h.all() {
		took, _, err := proc.Time(one.Pid())
		if err != nil {
			return c, err
		}
		c.hosts += took
	}
	if c.metadata, err = family(w.stack.Metadata.Pid()); err != nil {
		return c, err
	}
	if c.statements, err = w.count(ctx, "SELECT sum(xact_commit) FROM pg_stat_database"); err != nil {
		return c, err
	}
	c.wal, err = w.count(ctx, "SELECT (pg_current_wal_lsn() - '0/0')::bigint")
	return c, err
}

// family is what a process, and all children that it has or had, have computed so far.
func family(pid int) (time.Duration, error) {
	own, ended, err := proc.Time(pid)
	if err != nil {
		return 0, err
	}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, err
	}
	sum := own + ended
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			return 0, err
		}
		for child := range strings.FieldsSeq(string(text)) {
			n, err := strconv.Atoi(child)
			if err != nil {
				return 0, err
			}
			took, _, err := proc.Time(n)
			if errors.Is(err, os.ErrNotExist) { // it is among those that have ended now
				continue
			}
			if err != nil {
				return 0, err
			}
			sum += took
		}
	}
	return sum, nil
}
