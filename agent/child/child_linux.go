// Package child starts the programs that the agent runs.
package child

import "syscall"

// Attributes put a child in a session of its own, which is a process group that can be killed whole and cannot type into the
// terminal of who started the agent. The kernel kills it when the thread that started it ends, and so when the agent dies. It
// runs as a system user; nil: the agent's own.
func Attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: as}
}
