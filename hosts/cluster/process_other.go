//go:build unix && !linux

package cluster

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// prepare makes the command of a child. It cannot tie the child to its caller's death here, nor let it pass closed folders: both
// are Linux's.
func prepare(s spec) (*exec.Cmd, error) {
	cmd := exec.Command(s.path, s.args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	who, err := childUser()
	if err == nil && who.switched {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid}
	}
	return cmd, err
}

func descendants(pid int) []int {
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil
	}
	var found []int
	for _, field := range strings.Fields(string(out)) {
		if child, err := strconv.Atoi(field); err == nil {
			found = append(append(found, child), descendants(child)...)
		}
	}
	return found
}
