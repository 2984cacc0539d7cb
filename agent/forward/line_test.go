package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// A client that cannot be sent on gets the words of PostgreSQL's protocol for it, after its first message.
func TestRefusal(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	go func() {
		refuse(there, "57P03", "it is away")
		_ = there.Close()
	}()
	start := append(binary.BigEndian.AppendUint32(nil, 12), "12345678"...)
	check.Must(here.Write(start))(t)
	got := check.Must(io.ReadAll(here))(t)
	want := "E\x00\x00\x00\x26SFATAL\x00VFATAL\x00C57P03\x00Mit is away\x00\x00"
	if string(got) != want || int(binary.BigEndian.Uint32(got[1:])) != len(got)-1 {
		t.Errorf("%q", got)
	}
}

// server answers who asks for TLS with a byte, and then has it, or not.
func server(t *testing.T, answer byte, certificate tls.Certificate) (port int) {
	t.Helper()
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				ask := make([]byte, 8)
				if _, err := io.ReadFull(conn, ask); err != nil || !bytes.Equal(ask, []byte{0, 0, 0, 8, 4, 210, 22, 47}) {
					return
				}
				_, _ = conn.Write([]byte{answer})
				secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}})
				_, _ = io.Copy(secure, secure)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// Only the server itself is reached: one of the given authority and of that name.
func TestReach(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := check.Must(cluster.OpenCA(filepath.Join(dir, "ca")))(t)
	pair := check.Must(ca.Issue("one", "127.0.0.1"))(t)
	certificate := check.Must(tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile))(t)
	pem, own := string(check.Must(os.ReadFile(ca.CertFile()))(t)), string(check.Must(os.ReadFile(pair.CertFile))(t))
	port := server(t, 'S', certificate)
	plain := server(t, 'N', certificate)
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	other := check.Must(cluster.OpenCA(filepath.Join(dir, "other")))(t)
	otherPEM := string(check.Must(os.ReadFile(other.CertFile()))(t))
	noTLS := func(err error) bool { return err != nil && strings.Contains(err.Error(), "does not begin TLS") }
	for what, c := range map[string]struct {
		to target
		is func(error) bool
	}{
		"the server":                {target{"127.0.0.1", port, pem}, func(err error) bool { return err == nil }},
		"its own certificate":       {target{"127.0.0.1", port, own}, func(err error) bool { return err == nil }},
		"its own, another name":     {target{"localhost", port, own}, func(err error) bool { return errors.As(err, &name) }},
		"nothing to know it by":     {target{"127.0.0.1", port, ""}, func(err error) bool { return errors.As(err, &unknown) }},
		"another name":              {target{"localhost", port, pem}, func(err error) bool { return errors.As(err, &name) }},
		"another authority":         {target{"127.0.0.1", port, otherPEM}, func(err error) bool { return errors.As(err, &unknown) }},
		"no TLS":                    {target{"127.0.0.1", plain, ""}, noTLS},
		"nobody listens":            {target{"127.0.0.1", 1, ""}, func(err error) bool { return err != nil }},
		"no certificate in the PEM": {target{"127.0.0.1", port, "x"}, func(err error) bool { return err != nil }},
	} {
		conn, err := c.to.reach(t.Context())
		if !c.is(err) {
			t.Errorf("%s: %v", what, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	if from := (target{host: "127.0.0.1", port: port}).source(t.Context()); from.String() != "127.0.0.1" {
		t.Errorf("it comes from %s", from)
	}
	if from := (target{host: "127.0.0.1", port: 1}).source(t.Context()); from.String() != "127.0.0.1" {
		t.Errorf("it comes to one that is away from %s", from)
	}
}

// What a line carries ends with it, and there is room for no more than fits.
func TestReachByALine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := check.Must(cluster.OpenCA(filepath.Join(dir, "ca")))(t)
	pair := check.Must(ca.Issue("one", "127.0.0.1"))(t)
	port := server(t, 'S', check.Must(tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile))(t))
	at, all := pooler.Socket{Dir: dir, Number: 1}, make(room, 1)
	if _, err := openLine(pooler.Socket{Dir: dir + strings.Repeat("/x", 50), Number: 1}, target{}, nil, all); err == nil {
		t.Error("a socket whose path is too long is opened")
	}
	to := target{"127.0.0.1", port, string(check.Must(os.ReadFile(ca.CertFile()))(t))}
	l := check.Must(openLine(at, to, nil, all))(t)
	l.failed = func(err error) { t.Error(err) }
	go l.serve()
	first := check.Must(net.Dial("unix", at.Path()))(t)
	defer first.Close()
	check.Must(first.Write([]byte("there and back")))(t)
	got := make([]byte, 14)
	if check.Must(io.ReadFull(first, got))(t); string(got) != "there and back" {
		t.Errorf("%q", got)
	}
	second := check.Must(net.Dial("unix", at.Path()))(t)
	defer second.Close()
	check.Must(second.Write([]byte{0, 0, 0, 4}))(t)
	if text := check.Must(io.ReadAll(second))(t); !bytes.Contains(text, []byte("53300")) {
		t.Errorf("one too many hears %q", text)
	}
	l.remove()
	_ = first.SetReadDeadline(time.Now().Add(check.Patience))
	if _, err := first.Read(got); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it goes on after the end of the line: %v", err)
	}
	if _, err := os.Stat(at.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket: %v", err)
	}
	_, err := to.reach(ended())
	if err == nil {
		t.Error("a line that has ended reaches the server")
	}
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// Whether the server can be reached is known before a client comes. What is said of it does not differ from one look to the next.
func TestALineThatLeadsNowhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := check.Must(cluster.OpenCA(filepath.Join(dir, "ca")))(t)
	pair := check.Must(ca.Issue("one", "127.0.0.1"))(t)
	port := server(t, 'S', check.Must(tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile))(t))
	for what, to := range map[string]target{"away": {"127.0.0.1", 1, ""}, "unknown": {"127.0.0.1", port, ""}} {
		l := check.Must(openLine(pooler.Socket{Dir: dir, Number: to.port}, to, nil, make(room, 1)))(t)
		l.failed = func(error) {}
		go l.watch()
		check.Eventually(t, what+" is not found", func() bool { return l.failure() != "" })
		said := l.failure()
		client := check.Must(net.Dial("unix", l.socket.Path()))(t)
		go l.serve()
		check.Must(client.Write([]byte{0, 0, 0, 4}))(t)
		if text := check.Must(io.ReadAll(client))(t); !bytes.Contains(text, []byte("57P03")) || l.failure() != said {
			t.Errorf("%s: a client hears %q, and after %q it is %q", what, text, said, l.failure())
		}
		l.remove()
	}
}
