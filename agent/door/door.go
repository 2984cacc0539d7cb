// Package door bounds the connections of an http.Server that stands in the operator's network: whoever reaches it without a
// secret must not take its memory and files.
package door

import (
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/core/guests"
)

// Bounds of open connections.
type Bounds struct {
	All        int
	PerAddress int // of an IPv4 address or a /64 network of IPv6
	// Proxies are networks from which many clients come: they have no bound of their own.
	Proxies []netip.Prefix
}

// door lets connections in. Where there are too many, one without an admitted request is closed; see guests.Guests.
type door struct {
	log     *zap.Logger
	seldom  loop.Seldom
	proxies []netip.Prefix

	list *guests.Guests

	mu   sync.Mutex
	open map[net.Conn]*guests.Guest
}

// Bound makes a server let in no more connections than that, and has it log what strangers can bring about only once in a while.
// It sets ConnContext, ConnState and ErrorLog.
func Bound(s *http.Server, b Bounds, to *zap.Logger) {
	d := &door{log: to, proxies: b.Proxies, list: guests.New(b.All, b.PerAddress), open: make(map[net.Conn]*guests.Guest)}
	s.ErrorLog = log.New(d, "", 0)
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		g := d.enter(c)
		return context.WithValue(ctx, key{}, func() { d.list.Serve(g) })
	}
	s.ConnState = func(c net.Conn, now http.ConnState) {
		switch now {
		case http.StateIdle: // every request is answered
			d.wait(c)
		case http.StateClosed, http.StateHijacked:
			d.leave(c)
		case http.StateNew, http.StateActive:
		}
	}
}

type key struct{}

// Admit keeps the connection of a request from being closed for another one, until none of its requests is left to answer.
func Admit(ctx context.Context) {
	if serve, bounded := ctx.Value(key{}).(func()); bounded {
		serve()
	}
}

// Write takes a line of the server about a connection. It is said by what it says before the client's address.
func (d *door) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	what, _, _ := strings.Cut(text, " from ")
	d.seldom.Warn(d.log, what, text)
	return len(line), nil
}

func (d *door) enter(c net.Conn) *guests.Guest {
	end := func() { _ = below(c).Close() } // who serves it sees that
	from := guests.AddressOf(c.RemoteAddr())
	g, gone, bound := d.list.Enter(from, guests.Within(from, d.proxies), end)
	d.mu.Lock()
	d.open[c] = g
	d.mu.Unlock()
	if gone != nil {
		gone.End()
		d.seldom.Warn(d.log, bound, "connections are closed, since there are too many", zap.String("bound", bound),
			zap.Stringer("client", gone.From))
	}
	return g
}

func (d *door) wait(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.open[c]; g != nil {
		d.list.Wait(g)
	}
}

func (d *door) leave(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.open[c]; g != nil {
		d.list.Leave(g)
		delete(d.open, c)
	}
}

// below is the connection below TLS, which closes without a word to the client.
func below(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}
