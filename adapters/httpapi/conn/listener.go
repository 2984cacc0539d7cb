package conn

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/core/guests"
)

// lingerTime bounds how long a closing connection is drained, so that the client still gets its answer.
const lingerTime = 500 * time.Millisecond

// Limits are the times that a client has.
type Limits struct {
	HeaderTimeout time.Duration // from the connection's start to the first header
	WriteTimeout  time.Duration // for each write; a download's has as long as its rule allows where that is longer
}

// Listener survives a shortage of file descriptors, closes connections that the crowd has no room for, and returns guarded
// connections.
type Listener struct {
	net.Listener
	limits Limits
	crowd  *Crowd
	done   chan struct{}
	once   sync.Once
	mu     sync.Mutex
	open   map[*guardedConn]struct{}
}

// Guard makes a listener of another one.
func Guard(ln net.Listener, limits Limits, c *Crowd) *Listener {
	return &Listener{
		Listener: ln, limits: limits, crowd: c,
		done: make(chan struct{}),
		open: make(map[*guardedConn]struct{}),
	}
}

// Accept waits for a connection that there is room for. Its first bytes must arrive within the header timeout.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case l.crowd.served <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	inner, guest, err := l.acceptNext()
	if err != nil {
		<-l.crowd.served
		return nil, err
	}
	c := &guardedConn{Conn: inner, listener: l, guest: guest, writeTime: l.limits.WriteTimeout}
	_ = inner.SetReadDeadline(time.Now().Add(l.limits.HeaderTimeout)) // an error shows at the first read
	l.mu.Lock()
	l.open[c] = struct{}{}
	l.mu.Unlock()
	return c, nil
}

// acceptNext closes what there is no room for before anything of it is read: an answer would cost a wait for each.
func (l *Listener) acceptNext() (net.Conn, *guests.Guest, error) {
	for {
		c, err := l.acceptPatiently()
		if err != nil {
			return nil, nil, err
		}
		closed := func() { _ = c.Close() } // it is not used any more
		if guest, entered := l.crowd.enter(guests.AddressOf(c.RemoteAddr()), closed); entered {
			return c, guest, nil
		}
	}
}

// acceptPatiently retries if the error is temporary; fasthttp would stop serving altogether. Where files or memory are short, a
// connection without an admitted request makes room, one before each retry.
func (l *Listener) acceptPatiently() (net.Conn, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, err := l.Listener.Accept()
		switch {
		case isOneOf(err, shortages):
			l.crowd.shortage()
		case err == nil, !isOneOf(err, passing):
			return c, err
		}
		select {
		case <-time.After(pause):
		case <-l.done:
			return nil, net.ErrClosed
		}
	}
}

// The errors of accept that say nothing of the listener.
var (
	shortages = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}
	passing   = []syscall.Errno{syscall.ECONNABORTED, syscall.EINTR}
)

func isOneOf(err error, of []syscall.Errno) bool {
	return slices.ContainsFunc(of, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// Close stops accepting; open connections go on. To close again is no error.
func (l *Listener) Close() (err error) {
	l.once.Do(func() {
		close(l.done)
		err = l.Listener.Close()
	})
	return err
}

// Cut closes every connection that is still open, without draining.
func (l *Listener) Cut() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Conn.Close() // the worker that serves it sees the error and releases it
		n++
	}
	return n
}

func (l *Listener) release(c *guardedConn) {
	l.mu.Lock()
	delete(l.open, c)
	l.mu.Unlock()
	l.crowd.guests.Leave(c.guest)
	<-l.crowd.served
}

// guardedConn gives every write a deadline and, if asked to, reads what the client still sends before closing.
type guardedConn struct {
	net.Conn
	listener *Listener
	guest    *guests.Guest
	linger   atomic.Bool
	closed   atomic.Bool

	// Only the serving worker writes.
	writeTime time.Duration // that each write has at least
	deadline  time.Time     // of writes
}

// Write fails when the client does not take the bytes within the write time, or up to an eighth more: the deadline is moved only
// when a write would have less, as setting a timer costs more than a small write may.
func (c *guardedConn) Write(p []byte) (int, error) {
	if now := time.Now(); c.deadline.Sub(now) < c.writeTime {
		deadline := now.Add(c.writeTime + c.writeTime/8)
		if err := c.Conn.SetWriteDeadline(deadline); err != nil {
			return 0, err
		}
		c.deadline = deadline
	}
	return c.Conn.Write(p)
}

// setWriteTime gives each write from now on the write timeout, or so long where that is longer.
func (c *guardedConn) setWriteTime(longer time.Duration) {
	c.writeTime, c.deadline = max(longer, c.listener.limits.WriteTimeout), time.Time{}
}

// Close drops the connection. Closing a socket with unread bytes makes the kernel reset it, and a reset can overtake the
// answer; after Linger the sending half is closed first, and incoming bytes are read and dropped for up to lingerTime.
func (c *guardedConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	defer c.listener.release(c)
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.linger.Load() && half.CloseWrite() == nil {
		_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) // without a deadline the copy would still end with the client
		_, _ = io.Copy(io.Discard, c.Conn)
	}
	return c.Conn.Close()
}

// Linger asks for draining: the answer goes out while the client may still be sending.
func Linger(c net.Conn) {
	if g := guardOf(c); g != nil {
		g.linger.Store(true)
	}
}

// guardOf finds the guarded connection; nil where there is none.
func guardOf(c net.Conn) *guardedConn {
	g, _ := belowTLS(c).(*guardedConn)
	return g
}

// belowTLS is the connection below TLS and framing.
func belowTLS(c net.Conn) net.Conn {
	for {
		t, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = t.NetConn()
	}
}
