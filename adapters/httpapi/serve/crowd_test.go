package serve

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/guests"
)

// stallers has every timeout be long, so that nothing ends a connection but the crowd.
func stallers(c *Config) {
	l := &c.Limits
	l.HeaderTimeout, l.BodyTimeout, l.IdleTimeout, l.WriteTimeout = time.Minute, time.Minute, time.Minute, time.Minute
	l.Download.Window, l.Upload.Window = time.Minute, time.Minute
}

// dialFrom connects from an address of the loopback.
func (st *stage) dialFrom(t testing.TB, address string) *line {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	c := check.Must(dialer.DialContext(t.Context(), "tcp", st.address))(t)
	t.Cleanup(func() { _ = c.Close() })
	return &line{Conn: c, t: t, br: bufio.NewReader(c)}
}

// cut fails unless the server closes the connection, with whatever it has not read yet.
func (l *line) cut(within time.Duration) {
	l.t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(within))
	if _, err := io.Copy(io.Discard, l.br); errors.Is(err, os.ErrDeadlineExceeded) {
		l.t.Fatal("the connection stands")
	}
}

// stands fails if the server has closed the connection, or does so soon.
func (l *line) stands() {
	l.t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if b, err := l.br.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		l.t.Fatalf("the connection does not stand: %q, %v", b, err)
	}
}

const publicThing = "/api/v1/open-things"

// Where there are too many, one without an admitted request is closed, however far it is.
func TestAConnectionWithoutAnAdmittedRequestGivesWay(t *testing.T) {
	certFile, keyFile, roots := selfSigned(t)
	pair := TLS(check.Must(certfile.Open("the API", certFile, keyFile))(t).Certificate)
	secure := func(l *line) *line {
		c := tls.Client(l.Conn, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
		return &line{Conn: c, t: l.t, br: bufio.NewReader(c)}
	}
	for name, c := range map[string]struct {
		tls  bool
		hold func(*line)
	}{
		"sends nothing":       {false, func(*line) {}},
		"sends half a header": {false, func(l *line) { l.say("GET /api HTTP/1.1\r\nHost: x\r\nX-Slow: ") }},
		"has no key":          {false, func(l *line) { l.say(head("GET", thing, "")); l.hear(cutBy) }},
		"has had its answer": {false, func(l *line) {
			l.say(head("GET", thing, anyKey))
			l.hear(cutBy)
			time.Sleep(100 * time.Millisecond) // the server knows only a moment later that all of it was sent
		}},
		"sends no body, without a key": {false, func(l *line) {
			l.say(head("POST", publicThing, "", jsonType, "Content-Length: 9", "Expect: 100-continue"))
			check.Must(l.br.ReadString('\n'))(l.t)
		}},
		"begins no handshake": {true, func(*line) {}},
		"ends no handshake":   {true, func(l *line) { l.say("\x16\x03\x01\x01\x00\x01\x00") }},
		"sends nothing after its handshake": {true, func(l *line) {
			check.NoError(l.t, secure(l).Conn.(*tls.Conn).HandshakeContext(l.t.Context()))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t, stallers, func(cfg *Config) {
				cfg.Limits.Connections = 2
				if c.tls {
					cfg.TLS = pair
				}
			})
			first, second := st.dialFrom(t, "127.0.0.8"), st.dialFrom(t, "127.0.0.8")
			c.hold(first)
			c.hold(second)
			l := st.dialFrom(t, "127.0.0.9")
			if c.tls {
				l = secure(l)
			}
			l.say(head("GET", thing, anyKey))
			if r := l.hear(cutBy); r.StatusCode != 200 {
				t.Errorf("the newcomer got %d", r.StatusCode)
			}
			first.cut(cutBy)
			if n := st.excess(t); n["all waiting"] != 1 || len(n) != 1 {
				t.Errorf("connections in excess: %v", n)
			}
		})
	}
}

// A connection with an admitted request is closed for nobody: if there is no other, the new one is.
func TestAnAdmittedRequestIsEnded(t *testing.T) {
	for name, c := range map[string]struct {
		begin, end func(*stage, *line)
	}{
		"a download that stalls": {
			func(st *stage, l *line) {
				st.size = 64 << 20
				st.feed = func(*Request) io.ReadCloser { return newSource(st.size, nil) }
				l.download()
			},
			func(st *stage, l *line) {
				if n, err := io.CopyN(io.Discard, l.br, st.size); err != nil {
					l.t.Errorf("%d bytes, %v", n, err)
				}
			},
		},
		"a body that is slow": {
			func(_ *stage, l *line) {
				l.say(head("PATCH", thing, anyKey, jsonType, "Content-Length: 12", "Expect: 100-continue"))
				check.Must(l.br.ReadString('\n'))(l.t)
				check.Must(l.br.ReadString('\n'))(l.t)
				l.say(`{"name"`)
			},
			func(_ *stage, l *line) { l.say(`:"a"}`); l.expectOK() },
		},
		"a second request": {
			func(_ *stage, l *line) {
				l.say(head("GET", thing, anyKey))
				l.hear(cutBy)
				l.say(head("PATCH", thing, anyKey, jsonType, "Content-Length: 12", "Expect: 100-continue"))
				check.Must(l.br.ReadString('\n'))(l.t)
				check.Must(l.br.ReadString('\n'))(l.t)
			},
			func(_ *stage, l *line) { l.say(`{"name":"a"}`); l.expectOK() },
		},
	} {
		for bound, limit := range map[string]func(*Config){
			guests.BoundOfAll:     func(c *Config) { c.Limits.Connections = 1 },
			guests.BoundOfAddress: func(c *Config) { c.Limits.ConnectionsPerAddress = 1 },
		} {
			t.Run(name+", too many of "+bound, func(t *testing.T) {
				st := open(t, stallers, limit)
				l := st.dial(t)
				c.begin(st, l)
				for range 3 {
					st.dial(t).cut(atOnce)
				}
				c.end(st, l)
				if n := st.excess(t); n[bound+" new"] != 3 || len(n) != 1 {
					t.Errorf("connections in excess: %v", n)
				}
				said := st.logs.FilterMessage("connections are closed, since there are too many").All()
				if len(said) != 1 || said[0].ContextMap()["bound"] != bound || said[0].ContextMap()["client"] != "127.0.0.1" {
					t.Errorf("logged %v", said)
				}
			})
		}
	}
}

func (l *line) expectOK() {
	l.t.Helper()
	if r := l.hear(cutBy); r.StatusCode != 200 {
		l.t.Errorf("got %d %s", r.StatusCode, r.text)
	}
}

// A flood takes the places of the flood: a client with one connection keeps it, however slow it is.
func TestAFloodPushesNoOtherOut(t *testing.T) {
	const all = 20
	st := open(t, stallers, func(c *Config) { c.Limits.Connections = all })
	slow := st.dialFrom(t, "127.0.0.2")
	slow.say("GET " + thing + " HTTP/1.1\r\n")
	for range 5 {
		for _, from := range []string{"127.0.0.8", "127.0.0.9", "127.0.7.7"} {
			for range all {
				st.dialFrom(t, from)
			}
		}
		slow.stands()
	}
	slow.say("Host: api\r\nAuthorization: Bearer " + anyKey + "\r\n\r\n")
	slow.expectOK()
	if n := st.excess(t); n["all waiting"] < 5*3*all-all || len(n) != 1 {
		t.Errorf("connections in excess: %v", n)
	}
}

// A proxy has as many connections as there are, and each of its clients is refused as if it came by itself.
func TestAProxyHasNoBoundOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		all  int
		full bool
	}{"below the bound of all": {3, false}, "above it": {2, true}} {
		t.Run(name, func(t *testing.T) {
			st := open(t, stallers, func(cfg *Config) {
				cfg.Limits.Connections, cfg.Limits.ConnectionsPerAddress = c.all, 1
				cfg.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			})
			first, second := st.dial(t), st.dial(t)
			st.ask(t, head("GET", thing, "")).expect(t, 401, fault.Unauthorized)
			second.stands()
			if c.full {
				first.cut(atOnce)
			} else {
				first.stands()
			}
		})
	}
}

// excess is what the metric says, by bound and which connection was closed, where it is not 0.
func (st *stage) excess(t *testing.T) map[string]float64 {
	t.Helper()
	families := check.Must(st.metrics.Gather())(t)
	counted := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "pgherd_http_excess_connections_total" {
			for _, m := range f.GetMetric() {
				if n := m.GetCounter().GetValue(); n > 0 {
					counted[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = n
				}
			}
		}
	}
	return counted
}
