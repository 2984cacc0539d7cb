package logins_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
)

// relay stands between an agent and PostgreSQL, and may change what the agent sends: so a test takes one measure out of a flow.
type relay struct {
	listener net.Listener
	target   string
	// edit sees every message after the log-in; what it makes of the text must be as long as it was.
	edit func(text []byte) []byte
}

// relayed starts a relay to the stack's PostgreSQL.
func relayed(t testing.TB, s *agenttest.Stack, edit func([]byte) []byte) int {
	t.Helper()
	r := &relay{check.Must(net.Listen("tcp", "127.0.0.1:0"))(t), net.JoinHostPort(s.PG.Host(), strconv.Itoa(s.PG.Port())), edit}
	t.Cleanup(func() { _ = r.listener.Close() })
	go r.serve()
	return r.listener.Addr().(*net.TCPAddr).Port
}

func (r *relay) serve() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return // the test has ended
		}
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		go carry(client, server, func() error { _, err := io.Copy(client, server); return err })
		go carry(client, server, func() error { return r.forward(client, server) })
	}
}

// carry ends both connections with the first that ends.
func carry(client, server net.Conn, copying func() error) {
	_ = copying()
	_ = client.Close()
	_ = server.Close()
}

// forward hands on the messages of a client. The first has no type; a request to cancel is such a one too.
func (r *relay) forward(client io.Reader, server io.Writer) error {
	if err := r.message(client, server, 4, func(b []byte) []byte { return b }); err != nil {
		return err
	}
	for {
		if err := r.message(client, server, 5, r.edit); err != nil {
			return err
		}
	}
}

func (r *relay) message(from io.Reader, to io.Writer, header int, edit func([]byte) []byte) error {
	message := make([]byte, header)
	if _, err := io.ReadFull(from, message); err != nil {
		return err
	}
	text := make([]byte, binary.BigEndian.Uint32(message[header-4:])-4)
	if _, err := io.ReadFull(from, text); err != nil {
		return err
	}
	_, err := to.Write(slices.Concat(message, edit(text)))
	return err
}

// replacing is an edit that puts words of the same length in the place of others.
func replacing(old, with string) func([]byte) []byte {
	if len(old) != len(with) {
		panic("the words differ in length: " + old)
	}
	return func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(old), []byte(with)) }
}

func both(first, second func([]byte) []byte) func([]byte) []byte {
	return func(text []byte) []byte { return second(first(text)) }
}
