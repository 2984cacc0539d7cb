package webhooksender

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"

	"github.com/pgherd/pgherd/core/webhook"
)

// connect looks up the host, checks and dials its addresses, and does the TLS handshake.
func (s *Sender) connect(ctx context.Context, t webhook.Target) (net.Conn, error) {
	addresses, err := s.addresses(ctx, t)
	if err != nil {
		return nil, err
	}
	plain, err := s.dialer.Dial(ctx, addresses, t.Port)
	if err != nil {
		return nil, failed(connecting, err)
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

// addresses looks up the host name and checks everything that it resolves to. A refusal comes first in whatever is explained.
func (s *Sender) addresses(ctx context.Context, t webhook.Target) ([]netip.Addr, error) {
	found, err := s.dialer.Addresses(ctx, t)
	if err != nil {
		return nil, failed(resolving, err)
	}
	return found, nil
}
