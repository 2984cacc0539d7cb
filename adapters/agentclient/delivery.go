package agentclient

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// delivery decides once and for all whether any byte of a request was handed to a connection: either the first write comes
// first, or the caller gives up first, and then late writes are refused.
type delivery struct{ state atomic.Int32 }

const (
	undecided int32 = iota
	begun
	barred
)

// watch makes every connection that the request gets report to the delivery.
func (d *delivery) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if c, ok := info.Conn.(*watchedConn); ok {
				c.current.Store(d)
			}
		},
	})
}

// begin reports whether a write may go out.
func (d *delivery) begin() bool {
	d.state.CompareAndSwap(undecided, begun)
	return d.state.Load() == begun
}

// giveUp reports whether nothing was written, and ensures that nothing will be.
func (d *delivery) giveUp() bool {
	d.state.CompareAndSwap(undecided, barred)
	return d.state.Load() == barred
}

// watchedConn is a TLS connection; what is written to it is the request and nothing else.
type watchedConn struct {
	net.Conn
	current atomic.Pointer[delivery] // of the request that holds the connection
}

var errGivenUp = errors.New("the caller gave up before the first byte")

func (c *watchedConn) Write(p []byte) (int, error) {
	if d := c.current.Load(); d == nil || !d.begin() {
		return 0, errGivenUp
	}
	return c.Conn.Write(p)
}
