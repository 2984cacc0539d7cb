package pooler

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// The agent comes in as customers do, from its own address only, and sees where they would not: PostgreSQL that does not answer
// the question for verifiers, and PgBouncer that hangs.
func TestTheAgentComesInAsCustomersDo(t *testing.T) {
	s := realStack(t)
	enter := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return s.pooler.EnterOutside(ctx)
	}
	check.NoError(t, enter())
	if clients := check.Must(s.pooler.Clients(t.Context()))(t); len(clients) != 0 {
		t.Errorf("it counts as a customer: %+v", clients)
	}
	execute(t, s, "REVOKE EXECUTE ON FUNCTION pooler.login_secret FROM pgherd_pooler")
	err := enter()
	execute(t, s, "GRANT EXECUTE ON FUNCTION pooler.login_secret TO pgherd_pooler")
	if err == nil || !strings.Contains(err.Error(), "PostgreSQL does not answer") {
		t.Errorf("without the right to ask: %v", err)
	}
	check.NoError(t, enter())
	err = s.enter(t, "pgherd", "pgherd_pooler", "host=::1")
	if err == nil || !isRefusal(err) || strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("from another address: %v", err)
	}
	freeze(t, s)
	began := time.Now()
	if enter() == nil || time.Since(began) > 4*time.Second {
		t.Errorf("a PgBouncer that hangs lets it in, or holds it for %s", time.Since(began))
	}
}

func TestWhereTheAgentComesIn(t *testing.T) {
	for listen, want := range map[string]string{
		"0.0.0.0,::": "127.0.0.1", "::": "::1", "*": "127.0.0.1", "localhost": "127.0.0.1", "127.0.0.1,192.0.2.7": "192.0.2.7",
		"db.example.com,192.0.2.7": "192.0.2.7", "2001:db8::7,0.0.0.0": "2001:db8::7", "db.example.com": "invalid IP",
	} {
		s := Settings{ListenAddresses: strings.Split(listen, ",")}
		if got := s.OutsideAddress(); got.String() != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
		if rule := string(outsideRule(s)); (rule == "") != (s.OutsideAddress() == netip.Addr{}) {
			t.Errorf("%s: rule %q", listen, rule)
		}
	}
}

// A certificate that has ended is said to have, whatever else PgBouncer does.
func TestACertificateThatHasEndedIsSeen(t *testing.T) {
	key := check.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	ended := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(-time.Hour)}
	leaf := check.Must(x509.CreateCertificate(rand.Reader, &ended, &ended, key.Public(), key))(t)
	listener := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := io.ReadFull(conn, make([]byte, len(askForTLS))); err != nil {
			return
		}
		_, _ = conn.Write([]byte("S"))
		_ = tls.Server(conn, &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{leaf}, PrivateKey: key}},
		}).HandshakeContext(t.Context())
	}()
	c := NewConsole(Settings{
		ListenAddresses: []string{"127.0.0.1"}, ListenPort: listener.Addr().(*net.TCPAddr).Port,
		MaintenanceDatabase: "pgherd", AuthUser: "pgherd_pooler", AuthPassword: "x",
	})
	if err := c.EnterOutside(t.Context()); !errors.Is(err, ErrCertificateEnded) {
		t.Errorf("%v", err)
	}
}
