package pooler

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// crowd makes strangers. Stranger n says the same in each run with the same seed.
type crowd struct {
	seed    uint64
	address string
	tls     *tls.Config
	finals  []final
	t       *testing.T
}

func newCrowd(t *testing.T, s *stack, seed uint64) *crowd {
	t.Helper()
	text := check.Must(os.ReadFile(s.caFile))(t)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatal("no CA certificate")
	}
	config := &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
	return &crowd{seed: seed, address: s.bouncer.Address(), tls: config, finals: finalsFor(t, s), t: t}
}

// enter lets stranger n in: every second one inside TLS, every sixth with a log-in that gets as far as the password. One in eight
// then stays, on a goroutine of its own, until PgBouncer ends the connection; the others hang up after some milliseconds.
func (c *crowd) enter(n uint64, staying *sync.WaitGroup) error {
	d := dice{rand.New(rand.NewPCG(c.seed, n))}
	conn, err := c.dial(n%2 == 1)
	if err != nil {
		return err
	}
	said := pick(d, firstPackets...).draw
	if n%6 == 1 {
		if said, err = c.beginLogin(conn, d); err != nil {
			_ = conn.Close()
			return err
		}
	}
	_, _ = conn.Write(said(d)) // PgBouncer may hang up in the middle
	if d.IntN(8) == 0 {
		staying.Go(func() { c.stay(conn, n) })
		return nil
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Duration(d.IntN(20)) * time.Millisecond))
	_, _ = conn.Read(make([]byte, 1024)) // what there is, or nothing
	_ = conn.Close()
	return nil
}

func (c *crowd) dial(inTLS bool) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", c.address, mostWait)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(longestVisit))
	if !inTLS {
		return conn, nil
	}
	answer := make([]byte, 1)
	_, _ = conn.Write(packet(sslRequest, ""))
	if _, err := io.ReadFull(conn, answer); err != nil || answer[0] != 'S' {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS was not offered: %q, %w", answer, err)
	}
	inside := tls.Client(conn, c.tls)
	if err := inside.Handshake(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return inside, nil
}

// beginLogin begins to log in, and returns in which of the malformed ways to go on.
func (c *crowd) beginLogin(conn net.Conn, d dice) (next func(dice) []byte, err error) {
	_, _ = conn.Write(startup("user", "shop", "database", "shop"))
	if kind, code, _, err := readAnswer(conn); err != nil || kind != 'R' || code != saslAsked {
		return nil, fmt.Errorf("shop was not asked for its password: %q %d, %w", kind, code, err)
	}
	if d.IntN(2) == 0 {
		return pick(d, initials...).draw, nil
	}
	nonce := d.letters(1, 40)
	_, _ = conn.Write(saslInitial("SCRAM-SHA-256", "n,,n=,r="+nonce))
	kind, code, said, err := readAnswer(conn)
	if err != nil || kind != 'R' || code != saslContinue {
		return nil, fmt.Errorf("no answer to the beginning of SCRAM: %q %d, %w", kind, code, err)
	}
	both, _, _ := strings.Cut(strings.TrimPrefix(said, "r="), ",")
	last := pick(d, c.finals...)
	return func(d dice) []byte { return last.draw(d, both) }, nil
}

// stay waits for PgBouncer to end the connection, as it must for everybody who does not log in.
func (c *crowd) stay(conn net.Conn, n uint64) {
	_, err := io.Copy(io.Discard, conn)
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.t.Failed() {
		c.t.Errorf("PgBouncer did not end the connection of stranger %d within %s", n, longestVisit)
	}
	_ = conn.Close()
}
