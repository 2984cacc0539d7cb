package browser

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// attributes give a child a process group of its own and let it die with this process.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// living lists the processes of a group that have not ended.
func living(group int) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // It has just ended.
		}
		// The fields after the name, which is in brackets and may hold blanks: state, parent, group.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 2 && fields[0] != "Z" && fields[2] == strconv.Itoa(group) {
			pids = append(pids, pid)
		}
	}
	return pids
}
