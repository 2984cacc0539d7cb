package conn

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/pgherd/pgherd/core/download"
)

// ErrTooSlow means that the client was cut off.
var ErrTooSlow = errors.New("the client took less than the lowest rate of a download")

// Chunk is the most that one write of a download holds.
const Chunk = 64 << 10

// PacedWriter writes to a client that has to keep up the lowest rate, and resets the connection of one that does not. A reset
// also drops what the kernel still holds for that client.
type PacedWriter struct {
	to    io.Writer
	pace  download.Pace
	reset func()
	late  *time.Timer  // runs reset while a write hangs
	guard *guardedConn // nil where the connection has none
}

// never is longer than any download.
const never = 1 << 62 * time.Nanosecond

// NewPacedWriter paces what is written to a client by a rule. It is ended.
func NewPacedWriter(to io.Writer, c net.Conn, rule download.Rule) *PacedWriter {
	p := &PacedWriter{to: to, pace: rule.Begin(), reset: func() { resetConnection(c) }, guard: guardOf(c)}
	p.late = time.AfterFunc(never, p.reset)
	p.setWriteTime(p.pace.Allowance(Chunk)) // the most that a write is ever allowed
	wakeEarly(c)
	return p
}

// Write returns ErrTooSlow where the client is cut off.
func (p *PacedWriter) Write(b []byte) (int, error) {
	began := time.Now()
	p.late.Reset(p.pace.Allowance(len(b)))
	n, err := p.to.Write(b)
	took, hung := time.Since(began), !p.late.Stop()
	if hung || !p.pace.Moved(n, took) || errors.Is(err, os.ErrDeadlineExceeded) {
		p.reset()
		return n, ErrTooSlow
	}
	return n, err
}

// End stops the timer; what is written later has only the connection's own deadline.
func (p *PacedWriter) End() {
	p.late.Stop()
	p.setWriteTime(0)
}

// setWriteTime keeps the connection's own deadline from cutting off a client that the rule still bears with.
func (p *PacedWriter) setWriteTime(longer time.Duration) {
	if p.guard != nil {
		p.guard.setWriteTime(longer)
	}
}

// socketOf finds the socket below TLS and the listener's guard; nil where there is none.
func socketOf(c net.Conn) *net.TCPConn {
	c = belowTLS(c)
	if g, ok := c.(*guardedConn); ok {
		c = g.Conn
	}
	socket, _ := c.(*net.TCPConn)
	return socket
}

// resetConnection closes the socket below; whoever serves the connection sees the error and releases it.
func resetConnection(c net.Conn) {
	if socket := socketOf(c); socket != nil {
		_ = socket.SetLinger(0) // without it, the kernel would go on sending
		_ = socket.Close()      // closed already is as good
	}
}
