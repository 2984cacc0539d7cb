package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Numbers of the Linux capabilities used here.
const (
	capDACOverride   = 1 // reads, writes and passes what others own
	capDACReadSearch = 2 // reads and passes what others own
	capSetPCap       = 8 // changes a process's own rules for capabilities
)

// prepare makes the command of a child.
func prepare(s spec) (*exec.Cmd, error) {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: s.orphan}
	line := append([]string{s.path}, s.args...)
	who, err := childUser()
	if err != nil {
		return nil, err
	}
	if who.switched {
		attr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid}
		closed := !who.reaches(append(s.reads, s.path)...)
		if s.readAny || closed {
			attr.AmbientCaps, err = grants()
		}
		if closed && err == nil {
			attr.AmbientCaps = append(attr.AmbientCaps, capSetPCap)
			line, err = launcher(line)
		}
		if err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.SysProcAttr = attr
	return cmd, nil
}

// grants is the capability with which a child passes a folder closed to its user (a clone below /root) and reads a file of the
// caller. The narrow one is not always there: containers are often started without it, but with the wider one.
func grants() ([]uintptr, error) {
	permitted, err := permittedCapabilities()
	if err != nil {
		return nil, err
	}
	for _, capability := range []uintptr{capDACReadSearch, capDACOverride} {
		if permitted&(1<<capability) != 0 {
			return []uintptr{capability}, nil
		}
	}
	return nil, errClosed
}

var errClosed = errors.New("this folder is closed to the unprivileged user that runs PostgreSQL: open it, or move elsewhere")

// launcher starts a program in a closed folder by way of setpriv, for two reasons: a capability takes effect with the first
// program that is executed, too late to find that one; and access(2), with which PostgreSQL looks for its own programs, ignores
// capabilities until the securebit no_setuid_fixup is set. setpriv execs, so the process stays the same, and it drops the
// capability that only it needed.
func launcher(line []string) ([]string, error) {
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		return nil, errClosed
	}
	return append([]string{
		setpriv, "--securebits", "+no_setuid_fixup", "--ambient-caps", "-setpcap", "--inh-caps", "-setpcap", "--",
	}, line...), nil
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
