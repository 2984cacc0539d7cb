package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the kernel's unit of CPU time in /proc, on all of Linux's usual machines.
const tick = 10 * time.Millisecond

// cpu is the CPU time of a process, of those below it, and of those that it has seen end.
func cpu(pid int) (time.Duration, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	children, used := map[int][]int{}, map[int]time.Duration{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		of, parent, ticks, err := parseStat(string(text))
		if err != nil {
			return 0, err
		}
		children[parent], used[of] = append(children[parent], of), time.Duration(ticks)*tick
	}
	if _, runs := used[pid]; !runs {
		return 0, fmt.Errorf("process %d has ended", pid)
	}
	return sumBelow(pid, children, used), nil
}

func sumBelow(pid int, children map[int][]int, used map[int]time.Duration) time.Duration {
	sum := used[pid]
	for _, child := range children[pid] {
		sum += sumBelow(child, children, used)
	}
	return sum
}

// parseStat reads process, parent, and the ticks of the process and of its ended children. The name, in parentheses, may hold
// anything.
func parseStat(text string) (pid, parent int, ticks int64, err error) {
	before, after, found := strings.Cut(text, " (")
	fields := strings.Fields(after[strings.LastIndexByte(after, ')')+1:])
	const utime, cstime = 11, 14
	if !found || len(fields) <= cstime {
		return 0, 0, 0, fmt.Errorf("%q is not what the kernel says of a process", text)
	}
	for _, field := range fields[utime : cstime+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, 0, err
		}
		ticks += n
	}
	if pid, err = strconv.Atoi(before); err == nil {
		parent, err = strconv.Atoi(fields[1])
	}
	return pid, parent, ticks, err
}
