package svc

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pgherd/pgherd/acceptance/spec"
)

// proxy stands before the API host, keeps what it saw, and fails where a script wants that. It also takes requests as a proxy
// that a client was told to use.
type proxy struct {
	plain, secure *httptest.Server
	reverse       *httputil.ReverseProxy
	clock         spec.Clock

	mu      sync.Mutex
	seen    []string
	secrets map[string]bool // and other texts that differ from run to run
	// fault answers a request instead of the host, where it returns true.
	fault func(http.ResponseWriter, *http.Request) bool
	// cutAt is after how many bytes the next download breaks off; none below 0.
	cutAt int64
}

// clientAddress is that which the service sees of every client.
const clientAddress = "192.0.2.10"

func newProxy(host string, clock spec.Clock) (*proxy, error) {
	base, err := url.Parse(host)
	if err != nil {
		return nil, err
	}
	silent := log.New(io.Discard, "", 0) // faults are what scripts are about
	p := &proxy{clock: clock, secrets: map[string]bool{}, cutAt: -1}
	p.reverse = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(base)
			r.Out.Header.Set("X-Forwarded-For", clientAddress)
		},
		ModifyResponse: p.pass, ErrorLog: silent, FlushInterval: -1,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.plain, p.secure = httptest.NewUnstartedServer(p), httptest.NewUnstartedServer(p)
	p.plain.Config.ErrorLog, p.secure.Config.ErrorLog = silent, silent
	p.plain.Start()
	p.secure.StartTLS()
	return p, nil
}

func (p *proxy) close() {
	p.plain.Close()
	p.secure.Close()
}

// authority is the PEM text of what a client has to trust.
func (p *proxy) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.secure.Certificate().Raw})
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := p.record(r)
	switch {
	case fault != nil && fault(w, r):
	case r.Method == http.MethodConnect:
		p.tunnel(w)
	default:
		p.forward(w, r)
	}
}

// tunnel connects a client with the server that has TLS, whatever host it wants.
func (p *proxy) tunnel(w http.ResponseWriter) {
	there, err := net.Dial("tcp", p.secure.Listener.Addr().String())
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer there.Close()
	here, read, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer here.Close()
	// Not before: the server reads on while it is in charge, and would take the first byte that the client sends after the answer.
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(there, read) }() // either side may leave
	_, _ = io.Copy(here, there)
}

// forward passes a request on. Before one that changes something, a second passes, so that nothing is as old as something else.
// The service does its periodic work before each, and at no other time: what a script sees does not depend on how fast it runs.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request) {
	var passes time.Duration
	if r.Method != http.MethodGet {
		passes = time.Second
	}
	_ = p.clock.Advance(passes) // the fake clock never fails
	p.reverse.ServeHTTP(w, r)
}

// record keeps a request, and returns the fault that is wanted.
func (p *proxy) record(r *http.Request) func(http.ResponseWriter, *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := r.Method + " " + r.URL.RequestURI()
	if r.Method == http.MethodConnect {
		line = r.Method + " " + r.Host
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		line += " key=" + key
		if madeUpKey.MatchString(key) {
			p.secrets[key] = true
		}
	}
	if part := r.Header.Get("Range"); part != "" {
		line += " range=" + part
	}
	p.seen = append(p.seen, line)
	return p.fault
}

// madeUpKey is a key of repetition that svc has made.
var madeUpKey = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// secretMember is a member of an answer that is a secret. None needs an escape in JSON.
var secretMember = regexp.MustCompile(`"(?:password|secret|apiKey)":"([^"]+)"`)

// pass learns from an answer what will have to be masked, and breaks a download off where that is wanted. The time of an answer
// is the service's.
func (p *proxy) pass(response *http.Response) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	response.Header.Set("Date", p.clock.Now().Format(http.TimeFormat))
	if id := response.Header.Get("X-Request-Id"); id != "" {
		p.secrets[id] = true
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		if p.cutAt >= 0 && response.ContentLength != 0 {
			response.Body = &cutBody{ReadCloser: response.Body, left: p.cutAt}
			p.cutAt = -1
		}
		return nil
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it was read to its end
	response.Body = io.NopCloser(bytes.NewReader(body))
	for _, found := range secretMember.FindAllSubmatch(body, -1) {
		p.secrets[string(found[1])] = true
	}
	return err
}

// secretTexts are those that answers have told, and the IDs of requests.
func (p *proxy) secretTexts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.secrets))
}

// set changes the fault.
func (p *proxy) set(fault func(http.ResponseWriter, *http.Request) bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
	return nil
}

// cutBody ends with an error after some bytes.
type cutBody struct {
	io.ReadCloser
	left int64
}

var errCut = errors.New("the script cuts this off")

// Read implements io.Reader.
func (c *cutBody) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errCut
	}
	n, err := c.ReadCloser.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, err
}

// faults are the verbs about the proxy. Each fault replaces the one before.
var faults = []verb{
	{"requests", func(r *run, _ []string) error {
		r.proxy.mu.Lock()
		defer r.proxy.mu.Unlock()
		stdout := r.ts.Stdout() // which is empty from here on
		for _, line := range r.proxy.seen {
			_, _ = fmt.Fprintln(stdout, line)
		}
		r.proxy.seen = nil
		return nil
	}},
	{"proxy up", func(r *run, _ []string) error { return r.proxy.set(nil) }},
	// A connection breaks before an answer.
	{"proxy down", func(r *run, _ []string) error {
		return r.proxy.set(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	}},
	// No answer comes, until the client leaves.
	{"proxy hang", func(r *run, _ []string) error {
		return r.proxy.set(func(_ http.ResponseWriter, q *http.Request) bool {
			_, _ = io.Copy(io.Discard, q.Body) // only then the server sees that the client leaves
			<-q.Context().Done()
			return true
		})
	}},
	{"proxy answer STATUS FILE", func(r *run, v []string) error {
		status, err := strconv.Atoi(v[0])
		if err != nil {
			return err
		}
		return r.proxy.set(r.proxy.always(status, "", []byte(r.ts.ReadFile(v[1]))))
	}},
	// Answers every request with a redirect to another service.
	{"proxy redirect URL", func(r *run, v []string) error {
		return r.proxy.set(func(w http.ResponseWriter, q *http.Request) bool {
			http.Redirect(w, q, v[0]+q.URL.RequestURI(), http.StatusFound)
			return true
		})
	}},
	{"proxy html", func(r *run, _ []string) error {
		page := "<html>\n<head><title>502 Bad Gateway</title></head>\n<body><h1>502 Bad Gateway</h1></body>\n</html>\n"
		return r.proxy.set(r.proxy.always(http.StatusBadGateway, "", []byte(page)))
	}},
	{"proxy retry-after SECONDS COUNT", func(r *run, v []string) error {
		return r.proxy.refuse(http.StatusTooManyRequests, "RATE_LIMITED", v[0], v[1])
	}},
	{"proxy maintenance SECONDS COUNT", func(r *run, v []string) error {
		return r.proxy.refuse(http.StatusServiceUnavailable, "MAINTENANCE", v[0], v[1])
	}},
	// The next changing request is carried out, but its answer is lost.
	{"proxy lose", func(r *run, _ []string) error {
		var once sync.Once
		return r.proxy.set(func(_ http.ResponseWriter, q *http.Request) bool {
			if q.Method != http.MethodGet {
				once.Do(func() {
					r.proxy.forward(httptest.NewRecorder(), q)
					panic(http.ErrAbortHandler)
				})
			}
			return false
		})
	}},
	// The connections of the next requests for operations break.
	{"proxy drop COUNT", func(r *run, v []string) error {
		left, err := strconv.Atoi(v[0])
		if err != nil {
			return err
		}
		var mu sync.Mutex
		return r.proxy.set(func(_ http.ResponseWriter, q *http.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			if left > 0 && strings.Contains(q.URL.Path, "/operations/") {
				left--
				panic(http.ErrAbortHandler)
			}
			return false
		})
	}},
	{"proxy cut BYTES", func(r *run, v []string) error {
		n, err := strconv.ParseInt(v[0], 10, 64)
		r.proxy.mu.Lock()
		defer r.proxy.mu.Unlock()
		r.proxy.cutAt = n
		return err
	}},
}

// always gives every request the same answer.
func (p *proxy) always(status int, retryAfter string, body []byte) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Date", p.clock.Now().Format(http.TimeFormat))
		if json.Valid(body) {
			w.Header().Set("Content-Type", "application/json")
		}
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
		_, _ = w.Write(body) // a client may leave
		return true
	}
}

// refuse gives the next requests a refusal that says when to come again.
func (p *proxy) refuse(status int, code, seconds, count string) error {
	left, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	answer := p.always(status, seconds, fmt.Appendf(nil, `{"error":{"code":%q,"message":"try again later","details":[]}}`, code))
	var mu sync.Mutex
	return p.set(func(w http.ResponseWriter, q *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		left--
		return left >= 0 && answer(w, q)
	})
}
