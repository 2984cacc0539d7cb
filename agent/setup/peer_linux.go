package setup

import (
	"context"
	"errors"
	"net"
	"runtime"
	"syscall"
	"time"
)

// asUser connects as a system user: where pg_hba.conf says peer, PostgreSQL looks at who connects to its socket. Nothing else is
// done as that user.
type asUser struct{ uid int }

// DialContext implements pq.DialerContext. The user is that of one thread, for the time of a system call or two. A thread that
// could not be given back its own ends with its goroutine.
func (a asUser) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		own := syscall.Geteuid()
		if err := setUser(a.uid); err != nil {
			runtime.UnlockOSThread()
			done <- result{nil, err}
			return
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, network, address)
		if setUser(own) == nil {
			runtime.UnlockOSThread()
		}
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// setUser makes a user the effective one of the calling thread. (The functions of package syscall change all threads.)
func setUser(uid int) error {
	const same = ^uintptr(0)
	if _, _, no := syscall.RawSyscall(syscall.SYS_SETRESUID, same, uintptr(uid), same); no != 0 {
		return no
	}
	return nil
}

// Dial implements pq.Dialer, which calls DialContext.
func (a asUser) Dial(string, string) (net.Conn, error) { return nil, errors.ErrUnsupported }

// DialTimeout implements pq.Dialer, which calls DialContext.
func (a asUser) DialTimeout(string, string, time.Duration) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
