package forward

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
)

// target is the PgBouncer of another server, as its customers reach it.
type target struct {
	host string
	port int
	ca   string // PEM of what it is known by, beside what this machine trusts
}

// reachTime bounds the way to a server, up to where it speaks TLS. PgBouncer's own server_connect_timeout is longer.
const reachTime = 5 * time.Second

// A server that is gone without a word ends what it was connected with within half a minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

func (t target) address() string { return net.JoinHostPort(t.host, strconv.Itoa(t.port)) }

// reach connects, and begins TLS.
func (t target) reach(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	config, err := t.tls()
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext(ctx, "tcp", t.address())
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	secure, err := pooler.BeginTLS(ctx, conn, config)
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("TLS with %s: %w", t.address(), err), conn.Close())
	}
	return secure, nil
}

// tls has the server prove that it is the one of that name, by a certificate that is given or one that leads to an authority of
// this machine.
func (t target) tls() (*tls.Config, error) {
	roots := trusted()
	if t.ca != "" && !roots.AppendCertsFromPEM([]byte(t.ca)) {
		return nil, command.Refuse(command.ReasonInvalid, "ca holds no certificate in PEM")
	}
	return &tls.Config{ServerName: t.host, RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

// trusted are the authorities of this machine, which are read once.
func trusted() *x509.CertPool {
	roots, err := x509.SystemCertPool()
	if err != nil { // as where the machine has none
		roots = x509.NewCertPool()
	}
	return roots
}

// sourceTime bounds the look at where this server comes from, for each of two tries.
const sourceTime = 3 * time.Second

// source is the address from which this server comes to another one: that of a connection or, where the server does not take any
// now, as the routes have it. It is not valid where there is no way, or the name is unknown.
func (t target) source(ctx context.Context) netip.Addr {
	for _, network := range []string{"tcp", "udp"} {
		if from := t.sourceBy(ctx, network); from.IsValid() {
			return from
		}
	}
	return netip.Addr{}
}

func (t target) sourceBy(ctx context.Context, network string) netip.Addr {
	ctx, cancel := context.WithTimeout(ctx, sourceTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, t.address())
	if err != nil {
		return netip.Addr{}
	}
	defer conn.Close()
	from, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr().Unmap().WithZone("")
}
