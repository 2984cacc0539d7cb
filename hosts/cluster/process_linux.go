package cluster

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Numbers of the Linux capabilities that let a process pass folders that its user may not enter.
const (
	capDACOverride   = 1
	capDACReadSearch = 2
)

func attributes(s spec) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: s.orphan}
	who, err := childUser()
	if err != nil || !who.switched {
		return attr, err
	}
	attr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid}
	if s.readAny || !who.reaches(append(s.reads, s.path)...) {
		attr.AmbientCaps, err = grants()
	}
	return attr, err
}

// grants is the capability with which a child passes a folder closed to its user (a clone below /root) and reads a file of the
// caller. The narrow one is not always there: containers are often started without it, but with the wider one.
func grants() ([]uintptr, error) {
	held, err := permittedCapabilities()
	if err != nil {
		return nil, err
	}
	for _, capability := range []uintptr{capDACReadSearch, capDACOverride} {
		if held&(1<<capability) != 0 {
			return []uintptr{capability}, nil
		}
	}
	return nil, errors.New("this folder is closed to the unprivileged user that runs PostgreSQL: open it, or move elsewhere")
}

func permittedCapabilities() (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if hex, found := strings.CutPrefix(line, "CapPrm:"); found {
			return strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
		}
	}
	return 0, errors.New("no CapPrm in /proc/self/status")
}

// descendants lists the children of a process, their children and so on.
func descendants(pid int) []int {
	parents := map[int][]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if child, err := strconv.Atoi(entry.Name()); err == nil {
			parent := parentOf(child)
			parents[parent] = append(parents[parent], child)
		}
	}
	found := parents[pid]
	for i := 0; i < len(found); i++ {
		found = append(found, parents[found[i]]...)
	}
	return found
}

// parentOf reads the fourth field of /proc/<pid>/stat; the second, the name, is in brackets and may hold blanks. A process that
// has just ended has no parent.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}
