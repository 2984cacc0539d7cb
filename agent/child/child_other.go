//go:build unix && !linux

// Package child starts the programs that the agent runs.
package child

import "syscall"

// Attributes put a child in a session of its own, which is a process group that can be killed whole and cannot type into the
// terminal of who started the agent. It runs as a system user; nil: the agent's own. Here a child can outlive a killed agent; the
// next one ends the session of its dump (EndPredecessor).
func Attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: as}
}
