package artifact

import "syscall"

// childAttributes put a child in a process group of its own, which can be killed whole, and have the kernel kill it when the
// thread that started it ends, and so when the agent dies.
func childAttributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: as}
}
