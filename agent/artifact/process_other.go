//go:build unix && !linux

package artifact

import "syscall"

// childAttributes put a child in a process group of its own, which can be killed whole. Here a child can outlive a killed
// agent; the next one ends its session (EndPredecessor).
func childAttributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as}
}
