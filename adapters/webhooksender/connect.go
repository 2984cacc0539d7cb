package webhooksender

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/core/webhook"
)

// maxDialled bounds how many of a name's addresses are dialled in one attempt; all of them are checked.
const maxDialled = 4

// connect looks up the host, checks and dials its addresses, and does the TLS handshake.
func (s *Sender) connect(ctx context.Context, t webhook.Target) (net.Conn, error) {
	addresses, err := s.addresses(ctx, t)
	if err != nil {
		return nil, err
	}
	plain, err := s.dialAny(ctx, addresses[:min(len(addresses), maxDialled)], t.Port)
	if err != nil {
		return nil, err
	}
	// Whatever is done with this connection, it does not outlive the attempt.
	if deadline, ok := ctx.Deadline(); ok {
		if err := plain.SetDeadline(deadline); err != nil {
			plain.Close()
			return nil, failed(connecting, err)
		}
	}
	conn := tls.Client(plain, &tls.Config{
		ServerName: t.Host, RootCAs: s.roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, failed(shakingHands, err)
	}
	return conn, nil
}

// addresses looks up the host name and checks everything that it resolves to.
func (s *Sender) addresses(ctx context.Context, t webhook.Target) ([]netip.Addr, error) {
	if t.Address.IsValid() {
		return []netip.Addr{t.Address}, nil // the policy has checked it as part of the URL
	}
	name := t.Host
	if !s.policy.AllowPrivate {
		name += "." // a full name: the resolver tries no domain of the machine
	}
	found, err := s.resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, failed(resolving, err)
	}
	for i := range found {
		found[i] = found[i].Unmap() // some resolvers give every IPv4 address in IPv6 form
	}
	if err := s.policy.DecideAddresses(found); err != nil {
		return nil, err
	}
	return found, nil
}

// dialAny tries one address after the other; each gets an equal part of the time that is left.
func (s *Sender) dialAny(ctx context.Context, addresses []netip.Addr, port string) (net.Conn, error) {
	var last error
	for i, a := range addresses {
		share, cancel := part(ctx, len(addresses)-i)
		conn, err := s.dial(share, net.JoinHostPort(a.String(), port))
		cancel()
		if err == nil {
			return conn, nil
		}
		last = err
	}
	return nil, failed(connecting, last)
}

func part(ctx context.Context, of int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/time.Duration(of))
}

// errNotAllowed means that the address about to be dialled is not allowed, although the looked-up ones were.
var errNotAllowed = errors.New("the address may not be dialled")

func (s *Sender) dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{KeepAlive: -1, Control: s.guard}
	return dialer.DialContext(ctx, "tcp", address)
}

// guard sees the address as it goes to the kernel, just before it connects.
func (s *Sender) guard(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !s.policy.Allows(at.Addr()) {
		return errNotAllowed
	}
	return nil
}
