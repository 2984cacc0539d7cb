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
	known := map[string][]netip.Addr{
		"db.example.com": {netip.MustParseAddr("127.0.1.1"), netip.MustParseAddr("::ffff:192.0.2.9")},
		"me":             {netip.MustParseAddr("127.0.1.1")},
	}
	lookUp := func(_ context.Context, _, name string) ([]netip.Addr, error) {
		if addresses, ok := known[name]; ok {
			return addresses, nil
		}
		return nil, &net.DNSError{Name: name, Err: "unknown"}
	}
	for listen, want := range map[string]string{
		"0.0.0.0,::": "127.0.0.1", "::": "::1", "*": "127.0.0.1", "localhost": "127.0.0.1", "127.0.0.1,192.0.2.7": "192.0.2.7",
		"db.example.com,192.0.2.7": "192.0.2.9", "2001:db8::7,0.0.0.0": "2001:db8::7", "me": "127.0.1.1", "unknown,192.0.2.7": "",
	} {
		got, err := outsideOf(t.Context(), strings.Split(listen, ","), lookUp)
		if err == nil && got.String() != want || (err != nil) != (want == "") {
			t.Errorf("%s: %s, %v, want %s", listen, got, err, want)
		}
	}
}

// Where the agent does not come in, it proves nothing.
func TestNobodyComesInNowhere(t *testing.T) {
	s := testSettings()
	s.Outside = netip.Addr{}
	if err := NewConsole(s).EnterOutside(t.Context()); err == nil {
		t.Error("it does")
	}
	files := check.Must(Render(State{Settings: s}))(t)
	if rules := contentOf(t, files, "hba-"); strings.Contains(rules, "hostssl") {
		t.Errorf("it is let in: %s", rules)
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
		Outside: netip.MustParseAddr("127.0.0.1"), ListenPort: listener.Addr().(*net.TCPAddr).Port,
		MaintenanceDatabase: "pgherd", AuthUser: "pgherd_pooler", AuthPassword: "x",
	})
	if err := c.EnterOutside(t.Context()); !errors.Is(err, ErrCertificateEnded) {
		t.Errorf("%v", err)
	}
}
