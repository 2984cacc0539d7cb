package pgdb

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// impatient has the kernel give a connection up whose other end does not acknowledge what it is sent.
func impatient(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadAfter.Milliseconds()))
	})
	if err == nil {
		err = failed
	}
	return err
}
