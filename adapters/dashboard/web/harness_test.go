package web_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/net/html"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	host     = "db.example.com"
	origin   = "https://" + host
	session  = "__Host-pgherd"
	formKind = "application/x-www-form-urlencoded"
	thing    = "01234567-89ab-4cde-8f01-23456789abcd"
)

// gate knows the session of everybody whose name begins with "p": the token is the name.
type gate struct {
	mu          sync.Mutex
	visits      []access.Visit
	email       string // of everybody; empty: of the name
	refusal     error  // of those with a session
	maintenance bool
	through     chan struct{} // until it is closed, everybody waits; nil: nobody
}

func (g *gate) AdmitPerson(_ context.Context, v access.Visit) (access.Admission, error) {
	g.mu.Lock()
	g.visits = append(g.visits, v)
	g.mu.Unlock()
	if g.through != nil {
		<-g.through
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !strings.HasPrefix(v.Token, "p") {
		return access.Admission{}, person.ErrNoSession()
	}
	return access.Admission{
		Maintenance: g.maintenance,
		Caller: access.Caller{
			Session: person.Session{ID: id.SessionID(v.Token), UserID: id.UserID(v.Token)},
			User:    account.User{ID: id.UserID(v.Token), Email: cmp.Or(g.email, v.Token+"@example.com")},
		},
	}, g.refusal
}

// tokens are those that were presented.
func (g *gate) tokens() (list []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.visits {
		list = append(list, v.Token)
	}
	return list
}

// world is a server with pages of a test, and clients of it.
type world struct {
	testing.TB
	gate    gate
	said    *observer.ObservedLogs
	metrics *prometheus.Registry
	server  *web.Server
	net     *network
	http    *http.Client // over HTTP/2
	old     *http.Client // over HTTP/1.1

	mu      sync.Mutex
	reached []string // names of pages
}

// credentials are those of the server, and what a client trusts.
var credentials = sync.OnceValues(func() (*tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	text := x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &text, &text, key.Public(), key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
})

func clientTLS(protocols ...string) *tls.Config {
	_, pool := credentials()
	return &tls.Config{RootCAs: pool, ServerName: host, NextProtos: protocols}
}

// newWorld builds a server that does not serve yet, but for ServeHTTP.
func newWorld(t testing.TB, pages []web.Page, change ...func(*web.Config)) *world {
	t.Helper()
	core, said := observer.New(zap.DebugLevel)
	w := &world{TB: t, said: said, metrics: prometheus.NewRegistry(), net: newNetwork()}
	for i, page := range pages {
		pages[i].Serve = func(r *web.Request) (web.Answer, error) {
			w.mu.Lock()
			w.reached = append(w.reached, page.Name)
			w.mu.Unlock()
			return page.Serve(r)
		}
	}
	var requests atomic.Int64
	cfg := web.Config{
		Gate: &w.gate, Pages: pages, Origin: &url.URL{Scheme: "https", Host: host}, Product: "pgherd",
		Nav: []web.Link{{Text: "Things", Href: "/"}}, Log: zap.New(core), Metrics: w.metrics, Now: time.Now,
		RequestID: func() string { return fmt.Sprintf("request-%06d", requests.Add(1)) },
		Bound:     func(h *http.Server) { h.ErrorLog = log.New(io.Discard, "", 0) },
		TLS: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			own, _ := credentials()
			return own, nil
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	w.server = check.Must(web.New(cfg))(t)
	return w
}

// serve builds a server, and has it serve until the test ends.
func serve(t testing.TB, pages []web.Page, change ...func(*web.Config)) *world {
	t.Helper()
	w := newWorld(t, pages, change...)
	dial := func(context.Context, string, string) (net.Conn, error) { return w.net.dial() }
	client := func(protocol string) *http.Client {
		transport := &http.Transport{
			DialContext: dial, TLSClientConfig: clientTLS(), DisableCompression: true, Protocols: new(http.Protocols),
		}
		transport.Protocols.SetHTTP1(protocol == "http/1.1")
		transport.Protocols.SetHTTP2(protocol == "h2")
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{
			Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(w.net) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = w.server.Shutdown(ctx) // tests leave connections open
		check.NoError(t, <-served)
	})
	w.http, w.old = client("h2"), client("http/1.1")
	return w
}

// answer is a whole answer.
type answer struct {
	status int
	http.Header
	body string
}

// request makes a request as a browser would. A form makes it a POST.
func (w *world) request(path string, form url.Values, change ...func(*http.Request)) *http.Request {
	w.Helper()
	in := check.Must(http.NewRequest(http.MethodGet, origin+path, http.NoBody))(w)
	if form != nil {
		in = check.Must(http.NewRequest(http.MethodPost, origin+path, strings.NewReader(form.Encode())))(w)
		in.Header.Set("Content-Type", formKind)
		in.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for _, f := range change {
		f(in)
	}
	return in
}

func (w *world) do(c *http.Client, in *http.Request) (answer, error) {
	got, err := c.Do(in)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header, string(body)}, err
}

// ask makes a request over HTTP/2.
func (w *world) ask(path string, form url.Values, change ...func(*http.Request)) answer {
	w.Helper()
	return check.Must(w.do(w.http, w.request(path, form, change...)))(w)
}

func (w *world) get(path string, change ...func(*http.Request)) answer {
	w.Helper()
	return w.ask(path, nil, change...)
}

// direct asks without a connection.
func (w *world) direct(in *http.Request) answer {
	got := httptest.NewRecorder()
	w.server.ServeHTTP(got, in)
	return answer{got.Code, got.Header(), got.Body.String()}
}

// as is somebody with a session.
func as(name string) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: session, Value: name}) }
}

func with(header string, values ...string) func(*http.Request) {
	return func(r *http.Request) {
		if r.Header[header] = values; len(values) == 0 {
			delete(r.Header, header)
		}
	}
}

func method(name string) func(*http.Request) { return func(r *http.Request) { r.Method = name } }

// dialTLS is a connection to write on what a client should not. It ends with the test.
func (w *world) dialTLS(protocol string) *tls.Conn {
	w.Helper()
	c := tls.Client(check.Must(w.net.dial())(w), clientTLS(protocol))
	w.Cleanup(func() { _ = c.NetConn().Close() })
	check.NoError(w, c.Handshake())
	return c
}

// raw sends a text over HTTP/1.1.
func (w *world) raw(text string) answer {
	w.Helper()
	c := w.dialTLS("http/1.1")
	check.Must(io.WriteString(c, text))(w)
	name, _, _ := strings.Cut(text, " ")
	got := check.Must(http.ReadResponse(bufio.NewReader(c), &http.Request{Method: name}))(w)
	defer got.Body.Close()
	return answer{got.StatusCode, got.Header, string(check.Must(io.ReadAll(got.Body))(w))}
}

// pages returns which pages were reached since it was last asked.
func (w *world) pages() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.reached
	w.reached = nil
	return strings.Join(list, " ")
}

// parsed is the body as a browser reads it.
func (a answer) parsed(t testing.TB) *html.Node {
	t.Helper()
	return check.Must(html.Parse(strings.NewReader(a.body)))(t)
}

// elements are those with a name, in their order; all where the name is empty.
func elements(root *html.Node, name string) (list []*html.Node) {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && (name == "" || n.Data == name) {
			list = append(list, n)
		}
	}
	return list
}

// attribute is empty where there is none.
func attribute(n *html.Node, name string) string {
	i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if i < 0 {
		return ""
	}
	return n.Attr[i].Val
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// text is what is read of a node.
func text(n *html.Node) string {
	var b bytes.Buffer
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// named is the only one of elements that has a value in an attribute.
func named(t testing.TB, list []*html.Node, attr, value string) *html.Node {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(list), func(n *html.Node) bool { return attribute(n, attr) != value })
	if len(found) != 1 {
		t.Fatalf("%d elements have %s=%q", len(found), attr, value)
	}
	return found[0]
}

// plain is a page with a word.
func plain(word string) func(*web.Request) (web.Answer, error) {
	return func(*web.Request) (web.Answer, error) {
		return &web.View{Title: word, Sections: []*web.Section{{Note: word}}}, nil
	}
}

func nothing(*web.Request) (web.Answer, error) { return web.Redirect{To: "/"}, nil }
