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

// OutsideAddress is where the agent comes in as customers do, and from which it does: an address that PgBouncer listens on, first
// of all one that is not of the loopback. It is not valid where only names are known.
func (s Settings) OutsideAddress() (best netip.Addr) {
	for _, text := range s.ListenAddresses {
		address, err := netip.ParseAddr(text)
		switch {
		case text == "localhost", text == "*":
			address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		case err != nil:
			continue
		case address == netip.IPv4Unspecified():
			address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		case address == netip.IPv6Unspecified():
			address = netip.IPv6Loopback()
		}
		if !best.IsValid() || best.IsLoopback() && !address.IsLoopback() {
			best = address
		}
	}
	return best
}

// outsideRule admits the account that asks for verifiers to its own entry, from that address and with TLS. Its password is the
// agent's and PgBouncer's secret, and by it nobody reaches more than by PostgreSQL's own port on the loopback.
func outsideRule(s Settings) []byte {
	address := s.OutsideAddress()
	if !address.IsValid() {
		return nil
	}
	return fmt.Appendf(nil, "hostssl %s %s %s scram-sha-256\n", quoteDouble(s.MaintenanceDatabase), quoteDouble(s.AuthUser),
		netip.PrefixFrom(address, address.BitLen()))
}

// ErrCertificateEnded is wrapped by EnterOutside's error where PgBouncer serves a certificate that has ended.
var ErrCertificateEnded = errors.New("pooler: PgBouncer serves a certificate that has ended")

// EnterOutside goes the way of a customer: by TLS to the customers' port, with a password, and to PostgreSQL with the question
// that PgBouncer has for each log-in. It has one of the connections on which PgBouncer asks it, for some milliseconds, and none
// of a customer's. Whether the certificate is the right one, only a customer can say.
func (c *Console) EnterOutside(ctx context.Context) error {
	address := c.settings.OutsideAddress()
	if !address.IsValid() {
		return nil
	}
	at := net.JoinHostPort(address.String(), strconv.Itoa(c.settings.ListenPort))
	s, err := connect(ctx, pq.Config{
		Host: address.String(), Port: uint16(c.settings.ListenPort), Database: c.settings.MaintenanceDatabase,
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
	secure := tls.Client(conn, &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // it is this machine; which name and authority customers expect, it does not know
		VerifyConnection: func(s tls.ConnectionState) error {
			if end := s.PeerCertificates[0].NotAfter; time.Now().After(end) {
				return fmt.Errorf("%w, on %s", ErrCertificateEnded, end.UTC().Format(time.RFC3339))
			}
			return nil
		},
	})
	return secure, secure.HandshakeContext(ctx)
}
