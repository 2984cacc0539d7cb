package door_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/door"
)

// A request that was admitted is answered, however many connections come meanwhile. Of the others, those go that have waited
// longest, and the log says so once.
func TestTooManyConnections(t *testing.T) {
	core, said := observer.New(zap.DebugLevel)
	began, goOn := make(chan struct{}), make(chan struct{})
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		door.Admit(r.Context())
		close(began)
		<-goOn
	})}
	door.Bound(s, door.Bounds{All: 9, PerAddress: 3}, zap.New(core))
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	dial := func() net.Conn {
		c := check.Must(net.Dial("tcp", l.Addr().String()))(t)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	closed := func(c net.Conn, within time.Duration) bool {
		_ = c.SetReadDeadline(time.Now().Add(within))
		_, err := c.Read(make([]byte, 1))
		return err == io.EOF
	}
	admitted := dial()
	check.Must(io.WriteString(admitted, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"))(t)
	<-began
	idle := []net.Conn{dial(), dial(), dial(), dial()}
	for n, c := range idle {
		if within, goes := 10*time.Second, n < 2; !goes {
			within = 50 * time.Millisecond
			if closed(c, within) {
				t.Errorf("connection %d was closed", n)
			}
		} else if !closed(c, within) {
			t.Errorf("connection %d stays open", n)
		}
	}
	close(goOn)
	answer := make([]byte, 12)
	check.Must(io.ReadFull(admitted, answer))(t)
	if string(answer) != "HTTP/1.1 200" {
		t.Errorf("answered %q", answer)
	}
	check.NoError(t, idle[3].Close())
	check.Eventually(t, "a closed connection still counts", func() bool { return !closed(dial(), 50*time.Millisecond) })
	check.Eventually(t, "a connection whose request was answered stays before later ones", func() bool {
		dial()
		_ = admitted.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, err := io.Copy(io.Discard, admitted)
		return err == nil // it was closed
	})
	for _, line := range []string{
		"http: TLS handshake error from 192.0.2.1:1: EOF\n", "http: TLS handshake error from 192.0.2.2:1: EOF\n",
	} {
		check.Must(io.WriteString(s.ErrorLog.Writer(), line))(t)
	}
	texts := make(map[string]int)
	for _, e := range said.All() {
		texts[e.Message]++
	}
	if texts["connections are closed, since there are too many"] != 1 ||
		texts["http: TLS handshake error from 192.0.2.1:1: EOF"] != 1 ||
		slices.ContainsFunc(said.All(), func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, "192.0.2.2") }) {
		t.Errorf("logged %v", texts)
	}
}

// A connection with several requests at a time stays for as long as one of them is at work.
func TestRequestsAtATime(t *testing.T) {
	goOn, began := map[string]chan struct{}{"/a": make(chan struct{}), "/b": make(chan struct{})}, make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		door.Admit(r.Context())
		began <- struct{}{}
		<-goOn[r.URL.Path]
	}))
	s.EnableHTTP2 = true
	door.Bound(s.Config, door.Bounds{All: 2, PerAddress: 2}, zap.NewNop())
	s.StartTLS()
	defer s.Close()
	answered := map[string]chan error{"/a": make(chan error, 1), "/b": make(chan error, 1)}
	for _, path := range []string{"/a", "/b"} { // the second goes over the connection of the first
		go func() {
			got, err := s.Client().Get(s.URL + path)
			if err == nil {
				err = got.Body.Close()
			}
			answered[path] <- err
		}()
		<-began
	}
	crowd := func() { // one of them may stay
		var dialed []net.Conn
		for range 5 {
			c := check.Must(net.Dial("tcp", s.Listener.Addr().String()))(t)
			t.Cleanup(func() { _ = c.Close() })
			dialed = append(dialed, c)
		}
		for _, c := range dialed[:4] {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("a connection of the crowd was answered")
			}
		}
	}
	crowd()
	close(goOn["/a"])
	check.NoError(t, <-answered["/a"])
	crowd()
	close(goOn["/b"])
	check.NoError(t, <-answered["/b"])
}
