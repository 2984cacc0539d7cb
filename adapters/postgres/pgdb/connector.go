package pgdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
)

// nextHost is how long a host may take before the next one is tried beside it.
const nextHost = time.Second

// connector makes connections to the first host that takes writes. It begins with the one that last did, so that a host that
// hangs costs time once.
type connector struct {
	hosts []host
	last  atomic.Int64
	// generation grows when connections turn out to be of no use, as after a failover: those from before are not used again.
	generation atomic.Int64
}

type host struct {
	*pq.Connector
	address string
}

// newConnector makes a connector. limit is how long a server may be silent that has been asked something.
func newConnector(cfg pq.Config, limit time.Duration) (*connector, error) {
	c := &connector{}
	for _, one := range each(cfg) {
		made, err := pq.NewConnectorConfig(one)
		if err != nil {
			return nil, ErrURL
		}
		made.Dialer(dialer{limit: limit, lives: statementGrace, hung: func() func() {
			began := c.generation.Load()
			return func() { c.discard(began) }
		}})
		c.hosts = append(c.hosts, host{made, address(one)})
	}
	return c, nil
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return &pq.Driver{} }

// discard gives up the connections of a generation and of those before.
func (c *connector) discard(generation int64) { c.generation.CompareAndSwap(generation, generation+1) }

// attempt is the outcome of trying one host.
type attempt struct {
	host   int
	conn   driver.Conn
	socket *socket
	err    error
}

// Connect implements driver.Connector. Its error is a *ConnectError, or the context's.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	generation, first := c.generation.Load(), int(c.last.Load())
	outcomes := make(chan attempt)
	started, running := 0, 0
	start := func() {
		if started == len(c.hosts) {
			return
		}
		n := (first + started) % len(c.hosts)
		started, running = started+1, running+1
		go c.try(ctx, n, outcomes)
	}
	start()
	slow := time.NewTicker(nextHost)
	defer slow.Stop()
	failed := &ConnectError{}
	for {
		select {
		case got := <-outcomes:
			if got.err == nil {
				c.last.Store(int64(got.host))
				return &conn{got.conn.(driverConn), got.socket, c, generation}, nil
			}
			failed.add(c.hosts[got.host].address, got.err)
			start()
			if running--; running == 0 {
				return nil, failed
			}
		case <-slow.C:
			start()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try connects to one host. The driver looks whether it takes writes. What comes when another host was faster is closed.
func (c *connector) try(ctx context.Context, n int, outcomes chan<- attempt) {
	var kept *socket
	made, err := c.hosts[n].Connect(context.WithValue(ctx, keeper{}, &kept))
	select {
	case outcomes <- attempt{n, made, kept, err}:
	case <-ctx.Done():
		if err == nil {
			_ = made.Close() // nobody waits for it
		}
	}
}

// ConnectError says of each host why no connection that takes writes could be made.
type ConnectError struct {
	texts  []string
	causes []error
}

func (e *ConnectError) add(address string, err error) {
	text := err.Error()
	if errors.Is(err, pq.ErrSSLNotSupported) {
		text = "the server speaks no TLS, which sslmode in the URL asks for"
	}
	e.texts, e.causes = append(e.texts, address+": "+text), append(e.causes, err)
}

// Error is one line.
func (e *ConnectError) Error() string {
	return strings.ReplaceAll(strings.Join(e.texts, "; "), "\n", " ")
}

// Unwrap returns the causes.
func (e *ConnectError) Unwrap() []error { return e.causes }
