package pooler

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/lib/pq"
)

// OutsideOf finds Settings.Outside among what PgBouncer listens on: first of all an address that is not of the loopback. Names
// are looked up, as PgBouncer does when it starts, which ends where one is unknown.
func OutsideOf(ctx context.Context, listen []string) (netip.Addr, error) {
	return outsideOf(ctx, listen, net.DefaultResolver.LookupNetIP)
}

func outsideOf(
	ctx context.Context, listen []string, lookUp func(ctx context.Context, network, name string) ([]netip.Addr, error),
) (best netip.Addr, err error) {
	for _, text := range listen {
		var addresses []netip.Addr
		address, notOne := netip.ParseAddr(text)
		switch {
		case text == "localhost", text == "*", address == netip.IPv4Unspecified():
			addresses = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
		case address == netip.IPv6Unspecified():
			addresses = []netip.Addr{netip.IPv6Loopback()}
		case notOne == nil:
			addresses = []netip.Addr{address}
		default:
			if addresses, err = lookUp(ctx, "ip", text); err != nil {
				return best, err
			}
		}
		for _, a := range addresses {
			if !best.IsValid() || best.IsLoopback() && !a.IsLoopback() {
				best = a.Unmap()
			}
		}
	}
	return best, nil
}

// outsideRule admits the account that asks for verifiers to its own entry, from that address and with TLS. Its password is the
// agent's and PgBouncer's secret, and by it nobody reaches more than by PostgreSQL's own port on the loopback.
func outsideRule(s Settings) []byte {
	if !s.Outside.IsValid() {
		return nil
	}
	return fmt.Appendf(nil, "hostssl %s %s %s scram-sha-256\n", quoteDouble(s.MaintenanceDatabase), quoteDouble(s.AuthUser),
		netip.PrefixFrom(s.Outside, s.Outside.BitLen()))
}

// ErrCertificateEnded is wrapped by EnterOutside's error where PgBouncer serves a certificate that has ended.
var ErrCertificateEnded = errors.New("pooler: PgBouncer serves a certificate that has ended")

// EnterOutside goes the way of a customer: by TLS to the customers' port, with a password, and to PostgreSQL with the question
// that PgBouncer has for each log-in. It has one of the connections on which PgBouncer asks it, for some milliseconds, and none
// of a customer's. Whether the certificate is the right one, only a customer can say.
func (c *Console) EnterOutside(ctx context.Context) error {
	if !c.settings.Outside.IsValid() {
		return errors.New("pooler: it is not known where customers come in")
	}
	address := c.settings.Outside.String()
	at := net.JoinHostPort(address, strconv.Itoa(c.settings.ListenPort))
	s, err := connect(ctx, pq.Config{
		Host: address, Port: uint16(c.settings.ListenPort), Database: c.settings.MaintenanceDatabase,
		User: c.settings.AuthUser, Password: c.settings.AuthPassword,
	}, &timedWire{login: ctx, secure: secured})
	if err != nil {
		return fmt.Errorf("pooler: no log-in as customers at %s: %w", at, err)
	}
	defer s.close()
	err = s.each(ctx, "SELECT FROM pooler.login_secret('', '')", func(row) error { return nil })
	if err != nil {
		return fmt.Errorf("pooler: a log-in as customers at %s works, but PostgreSQL does not answer: %w", at, err)
	}
	return nil
}

// askForTLS asks for TLS, as PostgreSQL's protocol has it: the length of the message, and a code.
var askForTLS = []byte{0, 0, 0, 8, 4, 210, 22, 47}

// secured begins TLS on a connection to PgBouncer.
func secured(ctx context.Context, conn net.Conn) (net.Conn, error) {
	return BeginTLS(ctx, conn, &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // it is this machine; which name and authority customers expect, it does not know
		VerifyConnection: func(s tls.ConnectionState) error {
			if end := s.PeerCertificates[0].NotAfter; time.Now().After(end) {
				return fmt.Errorf("%w, on %s", ErrCertificateEnded, end.UTC().Format(time.RFC3339))
			}
			return nil
		},
	})
}

// BeginTLS begins TLS on a new connection to a server that speaks PostgreSQL's protocol.
func BeginTLS(ctx context.Context, conn net.Conn, c *tls.Config) (net.Conn, error) {
	if _, err := conn.Write(askForTLS); err != nil {
		return nil, err
	}
	var answer [1]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return nil, err
	}
	if answer[0] != 'S' {
		return nil, errors.New("PgBouncer does not begin TLS")
	}
	secure := tls.Client(conn, c)
	return secure, secure.HandshakeContext(ctx)
}
