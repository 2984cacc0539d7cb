package pooler

import (
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// served is the serial number of the certificate that a client is shown.
func (s *stack) served(t *testing.T) string {
	t.Helper()
	conn := check.Must(net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.settings.ListenPort))))(t)
	defer conn.Close()
	check.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	check.Must(conn.Write(packet(sslRequest, "")))(t)
	answer := make([]byte, 1)
	check.Must(io.ReadFull(conn, answer))(t)
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	check.NoError(t, secure.Handshake())
	return secure.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// A renewed certificate in the same files is shown after a reload of the same state. Nobody's connection ends.
func TestRenewedCertificateIsUsed(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	client := s.client("shop", "shop", "")
	defer client.Close()
	session := check.Must(client.Conn(ctx))(t)
	var before, after int
	check.NoError(t, session.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&before))
	former := s.served(t)
	ca := check.Must(cluster.OpenCA(filepath.Join(s.dir, "ca")))(t)
	check.Must(ca.Issue("pooler", "localhost", "127.0.0.1", "::1", "renewed.test"))(t)
	if now := s.served(t); now != former {
		t.Errorf("%s is shown before the reload", now)
	}
	check.NoError(t, s.pooler.Apply(ctx, s.defaultState()))
	if now := s.served(t); now == former {
		t.Error("the former certificate is still shown")
	}
	check.NoError(t, session.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&after), "the session of before")
	if before != after {
		t.Error("the session is another one")
	}
	check.NoError(t, s.enter(t, "shop", "shop", ""), "a client that verifies")
}
