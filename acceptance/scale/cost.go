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
		took, _, err := processor(one.Pid())
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

// clockTicks is how many of the kernel's a second has, on all platforms that it reports such times on.
const clockTicks = 100

// processor is what a process has computed so far, and those of its children that have ended.
func processor(pid int) (own, children time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	ticks := make([]int64, 4)
	for i := range ticks {
		n, err := strconv.ParseInt(fields[11+i], 10, 64)
		if err != nil {
			return 0, 0, err
		}
		ticks[i] = n
	}
	const tick = time.Second / clockTicks
	return time.Duration(ticks[0]+ticks[1]) * tick, time.Duration(ticks[2]+ticks[3]) * tick, nil
}

// family is what a process, and all children that it has or had, have computed so far.
func family(pid int) (time.Duration, error) {
	own, ended, err := processor(pid)
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
			took, _, err := processor(n)
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
