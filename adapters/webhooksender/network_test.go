package webhooksender

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/webhook"
)

// The receivers of the real world, each with what the customer is told.
func TestReceivers(t *testing.T) {
	slowHeader := func(conn net.Conn) {
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for err == nil {
			time.Sleep(20 * time.Millisecond)
			_, err = io.WriteString(conn, "X: y\r\n")
		}
	}
	endlessHeader := func(conn net.Conn) {
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for err == nil {
			_, err = io.WriteString(conn, "X: "+strings.Repeat("y", 4096)+"\r\n")
		}
	}
	endlessHints := func(conn net.Conn) {
		var err error
		for err == nil {
			_, err = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n")
		}
	}
	say := func(text string) http.HandlerFunc {
		return raw(func(conn net.Conn) { _, _ = io.WriteString(conn, text) })
	}
	cases := map[string]struct {
		handler http.HandlerFunc
		status  int
		told    string
	}{
		"200":                         {status(200), 200, ""},
		"500":                         {status(500), 500, "the receiver answered 500"},
		"a redirect":                  {status(307), 307, "the receiver answered 307; redirects are not followed"},
		"nothing":                     {silent, 0, "no answer within 0.8 seconds"},
		"a reset":                     {raw(reset), 0, "the connection was reset before an answer"},
		"closed":                      {say(""), 0, "the connection was closed before an answer"},
		"half a header":               {say("HTTP/1.1 200 OK\r\nX: "), 0, "the connection was closed before an answer"},
		"a header without end":        {raw(endlessHeader), 0, "the answer is not HTTP"},
		"a header that drips":         {raw(slowHeader), 0, "no answer within 0.8 seconds"},
		"hints without end":           {raw(endlessHints), 0, "the answer is not HTTP"},
		"no HTTP":                     {say("SSH-2.0-OpenSSH_9.6\r\n"), 0, "the answer is not HTTP"},
		"switching protocols":         {say("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"), 101, "the receiver answered 101"},
		"a body shorter than it says": {say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort"), 200, ""},
		"a gzip bomb's header":        {say("HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n"), 204, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, nil, c.handler)
			o := sendTo(t, local(t, 800*time.Millisecond), r.URL)
			if o.StatusCode != c.status || o.Error != c.told {
				t.Errorf("%+v", o)
			}
			if r.requests.Load() != 1 || r.conns.Load() != 1 {
				t.Errorf("%d requests on %d connections", r.requests.Load(), r.conns.Load())
			}
			if o.Took <= 0 || o.Took > 5*time.Second {
				t.Errorf("it took %s", o.Took)
			}
		})
	}
}

// With the limits of production: ten seconds are all that a receiver gets, and of a body without end only a little is read.
func TestTenSeconds(t *testing.T) {
	t.Parallel()
	r := receive(t, nil, func(w http.ResponseWriter, req *http.Request) {
		select {
		case <-time.After(11 * time.Second):
		case <-req.Context().Done():
		}
		w.WriteHeader(200)
	})
	o := sendTo(t, local(t, 0), r.URL)
	if o.StatusCode != 0 || o.Error != "no answer within 10 seconds" || o.Took < 10*time.Second || o.Took > 15*time.Second {
		t.Errorf("%+v", o)
	}
}

func TestABodyWithoutEndIsLeft(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	for name, pause := range map[string]time.Duration{"fast": 0, "slow": 30 * time.Millisecond} {
		r := receive(t, nil, raw(func(conn net.Conn) {
			_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
			for err == nil {
				var n int
				n, err = conn.Write(make([]byte, 256))
				written.Add(int64(n))
				time.Sleep(pause)
			}
		}))
		if o := sendTo(t, local(t, 0), r.URL); o.StatusCode != 200 || o.Error != "" || o.Took > 5*time.Second {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if n := written.Load(); n > 64<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

func TestAHeaderWithoutEndIsLeft(t *testing.T) {
	var written atomic.Int64
	r := receive(t, nil, raw(func(conn net.Conn) {
		n, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for err == nil {
			written.Add(int64(n))
			n, err = io.WriteString(conn, "X: "+strings.Repeat("y", 1024)+"\r\n")
		}
	}))
	if o := sendTo(t, local(t, 0), r.URL); o.StatusCode != 0 || o.Error != "the answer is not HTTP" {
		t.Errorf("%+v", o)
	}
	r.CloseClientConnections()
	if n := written.Load(); n > 8<<20 { // what is read and what the kernel's buffers hold
		t.Errorf("%d bytes were taken", n)
	}
}

func TestAHandshakeThatNeverEnds(t *testing.T) {
	t.Parallel()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(io.Discard, conn) // until the sender closes it
	}()
	o := sendTo(t, local(t, 300*time.Millisecond), "https://"+listener.Addr().String()+"/")
	if o.Error != "no answer within 0.3 seconds" {
		t.Errorf("%+v", o)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the connection outlives its attempt")
	}
}

func TestRedirectsLeadNowhere(t *testing.T) {
	target := receive(t, nil, status(200))
	for _, code := range []int{300, 301, 302, 303, 307, 308} {
		r := receive(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", target.URL)
			w.WriteHeader(code)
		})
		if o := sendTo(t, local(t, 0), r.URL); o.StatusCode != code || !strings.Contains(o.Error, "redirects are not followed") {
			t.Errorf("%+v", o)
		}
	}
	if n := target.conns.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

func TestTheProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	r := receive(t, nil, status(204))
	req := check.Must(http.NewRequest(http.MethodPost, r.named(), nil))(t)
	if proxy, err := http.ProxyFromEnvironment(req); err != nil || proxy == nil {
		t.Fatalf("the environment names no proxy for %s: %v", r.named(), err)
	}
	if o := sendTo(t, local(t, 0), r.named()); o.StatusCode != 204 {
		t.Errorf("%+v", o)
	}
	if n := proxied.Load(); n != 0 {
		t.Errorf("%d connections to the proxy", n)
	}
}

func TestEveryAttemptHasItsOwnConnection(t *testing.T) {
	r := receive(t, nil, func(w http.ResponseWriter, req *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		if req.Header.Get("Cookie") != "" || !req.Close || req.ProtoMajor != 1 {
			w.WriteHeader(500)
		}
	})
	s := local(t, 0)
	for range 5 {
		if o := sendTo(t, s, r.URL); o.Error != "" {
			t.Errorf("%+v", o)
		}
	}
	if n := r.conns.Load(); n != 5 {
		t.Errorf("5 attempts on %d connections", n)
	}
}

func TestARequestHasNoOtherHeaders(t *testing.T) {
	got := make(chan http.Header, 1)
	r := receive(t, nil, func(_ http.ResponseWriter, req *http.Request) { got <- req.Header })
	sendTo(t, local(t, 0), r.URL)
	allowed := "|Content-Type|User-Agent|Content-Length|Service-Event-Id|Service-Timestamp|Service-Signature|Connection|"
	for name, values := range <-got {
		if !strings.Contains(allowed, "|"+name+"|") || len(values) != 1 {
			t.Errorf("%s: %v", name, values)
		}
	}
}

func TestCertificates(t *testing.T) {
	own := newAuthority()
	stranger := must(tls.X509KeyPair(strangerPair()))
	cases := map[string]struct {
		config *tls.Config
		told   string
	}{
		"expired": {
			&tls.Config{Certificates: []tls.Certificate{own.issue(receiverName, time.Now().Add(-time.Minute))}},
			"the receiver's certificate has expired or is not valid yet",
		},
		"another name": {
			&tls.Config{Certificates: []tls.Certificate{own.issue("other.example.com", time.Now().Add(time.Hour))}},
			"the receiver's certificate is for another host name",
		},
		"an unknown authority": {
			&tls.Config{Certificates: []tls.Certificate{stranger}}, "the receiver's certificate is not from a known authority",
		},
		"TLS 1.1": {
			&tls.Config{
				Certificates: []tls.Certificate{goodCertificate()}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
			},
			"the TLS handshake failed",
		},
		"TLS 1.2": {&tls.Config{Certificates: []tls.Certificate{goodCertificate()}, MaxVersion: tls.VersionTLS12}, ""},
	}
	for name, c := range cases {
		r := receive(t, c.config, status(200))
		if o := sendTo(t, local(t, 0), r.named()); o.Error != c.told {
			t.Errorf("%s: %+v", name, o)
		}
		if c.told != "" && r.requests.Load() != 0 {
			t.Errorf("%s: a request was sent", name)
		}
	}
}

func TestNoTLSAndNoReceiver(t *testing.T) {
	plain := must(net.Listen("tcp", "127.0.0.1:0"))
	defer plain.Close()
	go func() {
		for {
			conn, err := plain.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			conn.Close()
		}
	}()
	if o := sendTo(t, local(t, 0), "https://"+plain.Addr().String()+"/"); o.Error != "the receiver does not speak TLS" {
		t.Errorf("%+v", o)
	}
	gone := must(net.Listen("tcp", "127.0.0.1:0"))
	gone.Close()
	if o := sendTo(t, local(t, 0), "https://"+gone.Addr().String()+"/"); o.Error != "the connection was refused" {
		t.Errorf("%+v", o)
	}
	if o := sendTo(t, local(t, 0), "https://unknown.example.com/"); o.Error != "the host name does not resolve" {
		t.Errorf("%+v", o)
	}
}

func TestTheNextAddressIsTried(t *testing.T) {
	r := receive(t, nil, status(200))
	s := newSender(t, Options{
		Policy:   webhook.Policy{AllowPrivate: true},
		Resolver: &names{answers: map[string][][]netip.Addr{receiverName: {addresses("127.0.0.2", "::ffff:127.0.0.1")}}},
	})
	if o := sendTo(t, s, r.named()); o.StatusCode != 200 {
		t.Errorf("%+v", o)
	}
}

func TestOptions(t *testing.T) {
	if _, err := New(Options{ExtraCA: []byte("no certificate")}); err == nil {
		t.Error("a file without certificates was taken for a CA")
	}
	if s, err := New(Options{}); err != nil || s.policy.AllowPrivate || s.roots != nil || s.timeout != 10*time.Second {
		t.Errorf("the zero value is not what production needs: %+v, %v", s, err)
	}
}
