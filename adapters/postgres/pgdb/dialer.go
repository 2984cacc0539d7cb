package pgdb

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// deadAfter is how long what was sent may stay unacknowledged, and about how long a machine that is gone goes unnoticed.
const deadAfter = 10 * time.Second

// dialer makes connections whose other end may not be silent for longer than limit when something was asked of it: neither a
// machine that is gone nor a process that is stopped holds anybody up for ever. The driver itself waits without end, whatever the
// context says.
type dialer struct {
	limit time.Duration
	// lives bounds how long a connection lasts that no conn keeps, where it is not 0.
	lives time.Duration
	// hung is called before a connection is made, and what it returns when that connection's server is silent for too long. It may
	// be nil.
	hung func() func()
}

// keeper is the key of a context whose value is where a conn keeps its socket.
type keeper struct{}

// DialContext implements pq.DialerContext.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	s := &socket{limit: d.limit}
	if keep, kept := ctx.Value(keeper{}).(**socket); kept {
		*keep = s
	} else if d.lives > 0 {
		s.until = time.Now().Add(d.lives)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, s.until)
		defer cancel()
	}
	if d.hung != nil {
		s.hung = d.hung()
	}
	keep := net.KeepAliveConfig{Enable: true, Idle: deadAfter / 2, Interval: deadAfter / 5, Count: 3}
	var err error
	s.Conn, err = (&net.Dialer{KeepAliveConfig: keep, Control: impatient}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Dial implements pq.Dialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout implements pq.Dialer.
func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// socket bounds each read and write, unless the driver has set a deadline, as it does while it connects.
type socket struct {
	net.Conn
	limit time.Duration
	until time.Time // the zero time: for ever
	hung  func()
	timed atomic.Bool
}

// SetDeadline implements net.Conn.
func (s *socket) SetDeadline(t time.Time) error {
	s.timed.Store(!t.IsZero())
	if !t.IsZero() && !s.until.IsZero() && s.until.Before(t) {
		t = s.until
	}
	return s.Conn.SetDeadline(t)
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	return s.bounded(s.SetReadDeadline, func() (int, error) { return s.Conn.Read(p) })
}

// Write implements net.Conn.
func (s *socket) Write(p []byte) (int, error) {
	return s.bounded(s.SetWriteDeadline, func() (int, error) { return s.Conn.Write(p) })
}

func (s *socket) bounded(set func(time.Time) error, do func() (int, error)) (int, error) {
	timed := s.timed.Load()
	if !timed {
		deadline := time.Now().Add(s.limit)
		if !s.until.IsZero() && s.until.Before(deadline) {
			deadline = s.until
		}
		if err := set(deadline); err != nil {
			return 0, err
		}
	}
	n, err := do()
	if !timed && s.hung != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		s.hung()
	}
	return n, err
}
