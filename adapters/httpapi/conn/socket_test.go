package conn

import (
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
)

// connected returns the two ends of a connection, the second as the listener hands it out.
func connected(t *testing.T, pair *tls.Config, secure bool) (client, server net.Conn) {
	t.Helper()
	ln := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	guarded := Guard(ln, Limits{time.Minute, time.Minute}, NewCrowd(Bounds{All: 1, PerAddress: 1}, zap.NewNop(), nil))
	defer guarded.Close()
	client = check.Must(net.Dial("tcp", ln.Addr().String()))(t)
	server = check.Must(guarded.Accept())(t)
	t.Cleanup(func() { client.Close(); server.Close() })
	if !secure {
		return client, server
	}
	outer := tls.Client(client, &tls.Config{InsecureSkipVerify: true})
	inner := tls.Server(server, pair)
	shaken := make(chan error, 1)
	go func() { shaken <- outer.Handshake() }()
	check.NoError(t, inner.Handshake())
	check.NoError(t, <-shaken)
	return outer, inner
}

func TestLeavingIsSeen(t *testing.T) {
	secured := httptest.NewTLSServer(nil)
	defer secured.Close()
	pair := secured.TLS
	for name, c := range map[string]struct {
		act  func(net.Conn)
		left bool
	}{
		"stays":               {func(net.Conn) {}, false},
		"closes":              {func(c net.Conn) { _ = c.Close() }, true},
		"resets":              {func(c net.Conn) { _ = socketOf(c).SetLinger(0); _ = socketOf(c).Close() }, true},
		"sends more":          {func(c net.Conn) { _, _ = io.WriteString(c, "GET") }, false},
		"sends more, closes":  {func(c net.Conn) { _, _ = io.WriteString(c, "GET"); _ = c.Close() }, true},
		"ends its half alone": {func(c net.Conn) { _ = socketOf(c).CloseWrite() }, true},
	} {
		for _, secure := range []bool{false, true} {
			client, server := connected(t, pair, secure)
			c.act(client)
			left, look := false, 100*time.Millisecond
			if c.left {
				look = 10 * time.Second
			}
			for until := time.Now().Add(look); !left && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
				left = HasLeft(server)
			}
			if left != c.left {
				t.Errorf("%s, with TLS %v: %v", name, secure, left)
			}
		}
	}
}
