package conn

import (
	"net"

	"golang.org/x/sys/unix"
)

// unsent is how many bytes the kernel may hold that the client has no room for yet.
const unsent = 128 << 10

// wakeEarly keeps what waits in the kernel small. By default that is megabytes, of which a third has to go before a writer is
// woken: with a client that takes 40 KiB a second, a single write then took 50 s, as if the client had stood still.
func wakeEarly(c net.Conn) {
	control(c, func(fd int) {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent) // without it, slow clients are judged harder
	})
}

// HasLeft reports whether the client has closed its end, also where it has sent more before that.
func HasLeft(c net.Conn) (left bool) {
	control(c, func(fd int) {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(polled, 0)
		left = err == nil && n > 0
	})
	return left
}

// control does nothing where there is no socket, or it is closed.
func control(c net.Conn, do func(fd int)) {
	socket := socketOf(c)
	if socket == nil {
		return
	}
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { do(int(fd)) }) // an error says that it is closed
	}
}
