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
	started := slices.ContainsFunc(bytes.Split(of("cmdline"), []byte{0}), func(argument []byte) bool {
		return filepath.Clean(string(argument)) == ConfigFile(c.settings.Dir)
	})
	var resident, private, other int64 // pages
	_, err = fmt.Sscan(string(of("statm")), &other, &resident, &other, &other, &other, &private)
	page := int64(os.Getpagesize())
	return Memory{Resident: resident * page, Private: private * page}, started && err == nil
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
