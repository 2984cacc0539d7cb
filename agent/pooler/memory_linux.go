package pooler

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Memory is what PgBouncer's process has. It is not known where the agent cannot see the process, as in another container, or
// where somebody else holds PgBouncer's socket for it: the process must have been started with our ConfigFile.
func (c *Console) Memory(ctx context.Context) (m Memory, known bool) {
	s, err := c.take(ctx)
	if err != nil {
		return m, false
	}
	defer c.give(s)
	pid, err := listener(s.wire.conn)
	if err != nil {
		return m, false
	}
	of := func(name string) []byte {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name)) // nothing: it is not visible, or gone
		return text
	}
	var resident, private, other int64 // pages
	_, err = fmt.Sscan(string(of("statm")), &other, &resident, &other, &other, &other, &private)
	page := int64(os.Getpagesize())
	return Memory{Resident: resident * page, Private: private * page}, c.started(int(pid)) && err == nil
}

// started reports whether a process was started with our ConfigFile. A process that is not visible, or gone, was not.
func (c *Console) started(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return slices.ContainsFunc(bytes.Split(text, []byte{0}), func(argument []byte) bool {
		return filepath.Clean(string(argument)) == ConfigFile(c.settings.Dir)
	})
}

// processBehind is PgBouncer's process at the other end of a connection to its socket; 0 where it is not known.
func (c *Console) processBehind(conn net.Conn) int {
	if pid, err := listener(conn); err == nil && c.started(int(pid)) {
		return int(pid)
	}
	return 0
}

// killProcess kills a process that is PgBouncer's, with SIGKILL: it need not do anything for that.
func (c *Console) killProcess(pid int) error {
	if !c.started(pid) { // another has its ID by now
		return syscall.ESRCH
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// listener is the process that listens on the other end of a unix socket.
func listener(conn net.Conn) (pid int32, err error) {
	unix, ok := conn.(syscall.Conn)
	if !ok {
		return 0, syscall.ENOTSOCK
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) {
		var peer *syscall.Ucred
		if peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = peer.Pid
		}
	})
	if failed != nil {
		return 0, failed
	}
	return pid, err
}
