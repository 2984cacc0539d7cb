package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/guests"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/core/repeat"
	"github.com/pgherd/pgherd/core/trace"
)

// Bounds of one request.
const (
	maxHeader   = 16 << 10
	maxBody     = 64 << 10
	headerTime  = 10 * time.Second
	bodyTime    = 20 * time.Second
	answerTime  = 90 * time.Second // of work: a database may take a minute to be made
	writeTime   = 30 * time.Second // without a byte that the client takes
	idleTime    = 2 * time.Minute
	pingTime    = time.Minute // without a frame over HTTP/2, after which a client is asked whether it is still there
	maxStreams  = 100         // requests that a connection may have open at a time
	maxNextPath = 500         // characters of a path to return to
)

// Gate admits people.
type Gate interface {
	AdmitPerson(ctx context.Context, v access.Visit) (access.Admission, error)
}

// Console says where the operator's console is open.
type Console struct {
	Networks network.List // from which it is used
	Home     Link         // of every page of an operator
}

// admits reports whether the console is open to an address.
func (c *Console) admits(client netip.Addr) bool { return c != nil && c.Networks.Contains(client) }

// Config holds the parts of a Server. All are required except Proxies, TLS, Console, Live, Bound, Admit and Tracer.
type Config struct {
	Gate      Gate
	Pages     []Page
	Origin    *url.URL                                             // where browsers find the dashboard: scheme and host
	Proxies   []netip.Prefix                                       // whose X-Forwarded-For is believed
	TLS       func(*tls.ClientHelloInfo) (*tls.Certificate, error) // nil serves plain HTTP, behind a proxy
	Product   string                                               // how the service is called
	Nav       []Link                                               // of every page of a person
	Console   *Console                                             // nil: the installation has none
	Log       *zap.Logger
	Metrics   prometheus.Registerer
	RequestID func() string // unique; at most 64 printable ASCII characters
	Now       func() time.Time
	Live      Live         // nil: no page is live
	Tracer    trace.Tracer // nil: there are no traces
	// Bound bounds the connections of the server.
	Bound func(*http.Server)
	// Admit keeps the connection of a request from being closed for another one, until that is answered; nil: it need not.
	Admit func(context.Context)
}

// Server serves the table of pages.
type Server struct {
	cfg     Config
	table   table
	log     *zap.Logger // of requests, without the place in the code, which is always the same
	metrics *metrics
	outages *repeat.Memory
	http    *http.Server
	mux     *http.ServeMux
	streams *streams
	desk    guests.Desk // of people
	// entrance is the desk of those without a session. What they ask for may wait for others, such as a provider of sign-ons: who
	// has a session does not wait with them.
	entrance guests.Desk
	stop     context.CancelFunc
}

// New builds the server; it fails where the table contradicts itself.
func New(cfg Config) (*Server, error) {
	if cfg.Origin == nil || cfg.Origin.Host == "" || cfg.Origin.Scheme != "https" {
		return nil, errors.New("dashboard: the address must be https://, without a path")
	}
	if cfg.Admit == nil {
		cfg.Admit = func(context.Context) {}
	}
	if cfg.Tracer == nil {
		cfg.Tracer = trace.Off{}
	}
	base, stop := context.WithCancel(context.Background())
	s := &Server{
		cfg: cfg, log: cfg.Log.WithOptions(zap.WithCaller(false)), outages: repeat.New(cfg.Now), streams: newStreams(), stop: stop,
		mux: http.NewServeMux(), desk: guests.NewDesk(guests.Admitted), entrance: guests.NewDesk(guests.Admitted),
	}
	var err error
	if s.table, err = newTable(slices.Concat(cfg.Pages, s.own())); err != nil {
		stop()
		return nil, err
	}
	if s.metrics, err = newMetrics(cfg.Metrics, s.table, s.streams); err != nil {
		stop()
		return nil, err
	}
	for path, methods := range s.table.byPath {
		s.mux.HandleFunc(path, func(_ http.ResponseWriter, r *http.Request) { s.dispatch(r, methods) })
	}
	s.mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { s.dispatch(r, nil) })
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	s.http = &http.Server{
		Handler: s, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, Protocols: protocols,
		// A connection holds no more of what a client sends than a few forms, whatever frames it announces.
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReadFrameSize: 16 << 10,
			MaxReceiveBufferPerStream: maxBody, MaxReceiveBufferPerConnection: 4 * maxBody,
			SendPingTimeout: pingTime, WriteByteTimeout: writeTime,
		},
		DisableGeneralOptionsHandler: true, // every answer is dressed
		BaseContext:                  func(net.Listener) context.Context { return base },
	}
	if cfg.TLS != nil {
		s.http.TLSConfig = &tls.Config{GetCertificate: cfg.TLS, MinVersion: tls.VersionTLS12}
	}
	if cfg.Bound != nil {
		cfg.Bound(s.http)
	}
	return s, nil
}

// own are the pages of the server itself.
func (s *Server) own() []Page {
	p := parts()
	pages := []Page{
		Get("style", "/assets/"+p.style.name, p.style.serve).For(Anybody).Of(""),
		Get("script", "/assets/"+p.script.name, p.script.serve).For(Anybody).Of(""),
		Get("icon", "/assets/"+p.icon.name, p.icon.serve).For(Anybody).Of(""),
	}
	if s.cfg.Live != nil {
		pages = append(pages, Get("live", "/live", s.live))
	}
	return pages
}

// Serve answers until Shutdown.
func (s *Server) Serve(ln net.Listener) error {
	serve := s.http.Serve
	if s.cfg.TLS != nil {
		serve = func(ln net.Listener) error { return s.http.ServeTLS(ln, "", "") }
	}
	if err := serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown ends the streams, lets open requests finish until ctx ends, and cuts off the others.
func (s *Server) Shutdown(ctx context.Context) error {
	s.streams.endAll()
	err := s.http.Shutdown(ctx)
	s.stop()
	if err != nil {
		err = fmt.Errorf("connections were cut: %w", errors.Join(err, s.http.Close()))
	}
	return err
}

// ServeHTTP is the first to see a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	r := &Request{
		ID: s.cfg.RequestID(), Now: s.cfg.Now(), http: in, server: s, out: &countingWriter{ResponseWriter: w},
		Client: guests.ClientOf(addressOf(in), in.Header.Values("X-Forwarded-For"), s.cfg.Proxies),
	}
	defer s.observe(r)
	defer s.recover(r)
	control := http.NewResponseController(r.out)
	// The deadlines of streams and downloads are their own.
	_ = control.SetWriteDeadline(time.Now().Add(answerTime + writeTime))
	if in.ContentLength != 0 { // also where nobody asks for the body: before the next request, it has to be read
		_ = control.SetReadDeadline(time.Now().Add(bodyTime))
	}
	s.dress(r.out.Header(), r.ID)
	if in.Host != s.cfg.Origin.Host {
		r.fail(errHost())
		return
	}
	s.mux.ServeHTTP(r.out, in.WithContext(context.WithValue(in.Context(), requestKey{}, r)))
}

type requestKey struct{}

// dispatch serves one of the pages of a path.
func (s *Server) dispatch(in *http.Request, methods map[string]*Page) {
	r := in.Context().Value(requestKey{}).(*Request)
	r.http = in
	method := in.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	switch page, post := methods[method], methods[http.MethodPost]; {
	case methods == nil:
		r.fail(errNoPage())
	case page == nil && method == http.MethodGet && post != nil:
		// Somebody loads the page anew that showed what was wrong: its address is the action's.
		if post.Who == Operator { // to others, a redirect would say that there is one
			r.page = s.table.byPath[post.Back][http.MethodGet]
			s.serve(r)
			return
		}
		r.redirect(filled(post.Back, in.PathValue))
	case page == nil && forOperators(methods):
		r.fail(errNoPage())
	case page == nil:
		allowed := slices.Collect(maps.Keys(methods))
		if methods[http.MethodGet] != nil {
			allowed = append(allowed, http.MethodHead)
		}
		slices.Sort(allowed)
		r.out.Header().Set("Allow", strings.Join(allowed, ", "))
		r.fail(errMethod())
	default:
		r.page = page
		s.serve(r)
	}
}

// forOperators reports whether a path is one of the console.
func forOperators(methods map[string]*Page) bool {
	for _, page := range methods {
		if page.Who == Operator {
			return true
		}
	}
	return false
}

func addressOf(r *http.Request) netip.Addr {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr().Unmap().WithZone("")
}

// nav are the links of every page of a person.
func (s *Server) nav(r *Request) []Link {
	links := append([]Link(nil), s.cfg.Nav...)
	if r.Caller.Operator && s.cfg.Console.admits(r.Client) {
		links = append(links, s.cfg.Console.Home)
	}
	for i := range links {
		at := links[i].Href
		links[i].Here = r.http.URL.Path == at || at != "/" && strings.HasPrefix(r.http.URL.Path, at+"/")
	}
	return links
}
