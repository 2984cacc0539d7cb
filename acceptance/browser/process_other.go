//go:build unix && !linux

package browser

import "syscall"

// attributes give a child a process group of its own. Only Linux lets it die with this process.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// living cannot tell here, and says that none lives.
func living(int) []int { return nil }
