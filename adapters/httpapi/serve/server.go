package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/httpapi/conn"
	"github.com/pgherd/pgherd/core/guests"
	"github.com/pgherd/pgherd/core/repeat"
	"github.com/pgherd/pgherd/core/trace"
)

// Config holds the parts of a Server. All are required except Proxies, TLS and Tracer.
type Config struct {
	Gate      Gatekeeper
	Routes    []Route
	Limits    Limits
	Proxies   []netip.Prefix // whose X-Forwarded-For is believed
	TLS       *tls.Config    // nil serves plain HTTP, behind a proxy
	Log       *zap.Logger
	Metrics   prometheus.Registerer
	RequestID func() string // unique; at most 64 printable ASCII characters
	Tracer    trace.Tracer  // nil: there are no traces
}

// Server serves the table of routes.
type Server struct {
	gate      Gatekeeper
	routes    []Route
	limits    Limits
	proxies   []netip.Prefix
	tls       *tls.Config
	log       *zap.Logger
	metrics   *metrics
	requests  *zap.Logger // as log, without the place in the code, which is always the same
	outages   *repeat.Memory
	crowd     *conn.Crowd
	desk      guests.Desk
	requestID func() string
	tracer    trace.Tracer

	app       *fiber.App
	route     fasthttp.RequestHandler
	base      context.Context
	cutOff    context.CancelFunc
	mu        sync.Mutex
	listeners []*conn.Listener
	stopped   bool
}

// New builds the server from the table; it fails if the table is inconsistent.
func New(cfg Config) (*Server, error) {
	m, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, err
	}
	s := &Server{
		gate: cfg.Gate, limits: cfg.Limits, proxies: cfg.Proxies, tls: cfg.TLS,
		log: cfg.Log, requests: cfg.Log.WithOptions(zap.WithCaller(false)), metrics: m, outages: repeat.New(time.Now),
		crowd: conn.NewCrowd(conn.Bounds{
			All: cfg.Limits.Connections, PerAddress: cfg.Limits.ConnectionsPerAddress, Proxies: cfg.Proxies,
		}, cfg.Log, m.excess),
		desk:      guests.NewDesk(cfg.Limits.Admissions),
		requestID: cfg.RequestID, tracer: cfg.Tracer,
	}
	if s.routes, err = withDescription(cfg.Routes); err != nil {
		return nil, err
	}
	if s.tracer == nil {
		s.tracer = trace.Off{}
	}
	m.begin(s.routes)
	s.base, s.cutOff = context.WithCancel(context.Background())
	s.app = newApp(cfg.Limits)
	for i := range s.routes {
		s.register(&s.routes[i])
	}
	s.app.Use(func(c *fiber.Ctx) error { return s.answer(requestOf(c.Context()), s.serveUnmatched) })
	s.takeOver(s.app.Server())
	return s, nil
}

func newApp(l Limits) *fiber.App {
	return fiber.New(fiber.Config{
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		Immutable:                    true,
		CaseSensitive:                true,
		StrictRouting:                true,
		DisableStartupMessage:        true,
		ReduceMemoryUsage:            true, // flushes each answer, so that none waits for the body of a pipelined request
		ReadTimeout:                  l.HeaderTimeout,
		IdleTimeout:                  l.IdleTimeout,
		ReadBufferSize:               l.HeaderBytes,
		Concurrency:                  2 * conn.Workers(l.Connections), // the crowd bounds them; a worker ends after its connection
	})
}

// takeOver puts front.go's checks before fiber's handler.
func (s *Server) takeOver(srv *fasthttp.Server) {
	s.route = s.app.Handler()
	srv.Handler = s.serve
	srv.HeaderReceived = deferBody
	srv.ErrorHandler = s.serveUnparsed
	srv.SecureErrorLogMessage = true
	srv.CloseOnShutdown = true
}

func (s *Server) register(route *Route) {
	s.app.Add(route.Method, fiberPath(route.Path), func(c *fiber.Ctx) error {
		r := requestOf(c.Context())
		r.fiber, r.route = c, route
		return s.answer(r, s.serveRoute)
	})
}

// answer runs the rest of a request and writes its refusal; nothing is left for fiber's own error handling.
func (s *Server) answer(r *Request, serve func(*Request) error) error {
	s.limitTime(r)
	res := &r.raw.Response
	if r.route == nil || r.route.NoStore {
		forbidStoring(res)
	}
	if err := serve(r); err != nil {
		r.cause = refuse(res, err, r.route != nil && r.route.BareMaintenance)
	}
	return nil
}

// serve is the first and the last to see a request.
func (s *Server) serve(raw *fasthttp.RequestCtx) {
	r := &Request{
		ID: s.requestID(), server: s, raw: raw, started: time.Now(),
		Client: clientAddress(raw, s.proxies), body: takeNotes(raw),
	}
	raw.Response.Header.Set(headerRequestID, r.ID)
	raw.SetUserValue(requestKey{}, r)
	defer s.finish(r)
	if ambiguousHeader(&raw.Request.Header, r.body.length) {
		r.body.readToEnd = false
		forbidStoring(&raw.Response)
		r.cause = refuse(&raw.Response, errNoHTTP, false)
		return
	}
	if slices.Contains(fiber.DefaultMethods, string(raw.Method())) {
		s.route(raw)
		return
	}
	_ = s.answer(r, s.serveUnmatched) // never an error
}

// finish also answers for a handler that panicked.
func (s *Server) finish(r *Request) {
	if p := recover(); p != nil {
		s.log.Error("handler panicked", zap.String("requestId", r.ID), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		r.raw.Response.ResetBody()
		r.cause = refuse(&r.raw.Response, fmt.Errorf("panic: %v", p), false)
	}
	r.body.end(r.raw)
	r.fiber = nil
	if r.stream != nil {
		return // its Close ends the context and observes
	}
	if r.cancel != nil {
		r.cancel()
	}
	s.observe(r, r.raw.Response.StatusCode(), int64(len(r.raw.Response.Body())))
}

// serveUnparsed answers what fasthttp could not read; the connection closes behind it.
func (s *Server) serveUnparsed(raw *fasthttp.RequestCtx, err error) {
	shown := unparsed(err)
	raw.Response.Reset()
	raw.Response.Header.Set(headerRequestID, s.requestID())
	forbidStoring(&raw.Response)
	_ = refuse(&raw.Response, shown, false) // the client's fault: nothing to log
	closeAfterAnswer(raw, raw.Conn())
	if !errors.Is(err, net.ErrClosed) { // by this host
		s.metrics.unparsed(shown)
	}
}

// Serve accepts connections until Shutdown, and none if that was called before. It then returns nil.
func (s *Server) Serve(ln net.Listener) error {
	g := conn.Guard(ln, conn.Limits{
		HeaderTimeout: s.limits.HeaderTimeout, WriteTimeout: s.limits.WriteTimeout,
	}, s.crowd)
	s.mu.Lock()
	stopped := s.stopped
	s.listeners = append(s.listeners, g)
	s.mu.Unlock()
	if stopped {
		return g.Close()
	}
	ln = g
	if s.tls != nil {
		ln = tls.NewListener(g, s.tls)
	}
	return s.app.Server().Serve(conn.Frame(ln))
}

// Shutdown stops accepting, lets the requests that are being served finish until ctx ends, then ends their contexts and
// closes their connections. It returns an error that says how many were cut.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopAccepting()
	err := s.app.Server().ShutdownWithContext(ctx)
	s.cutOff()
	s.mu.Lock()
	defer s.mu.Unlock()
	cut := 0
	for _, g := range s.listeners {
		cut += g.Cut()
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%d connections were cut: %w", cut, err)
	}
	return err
}

// stopAccepting closes the listeners itself: fasthttp knows nothing yet of one whose Serve has only just begun.
func (s *Server) stopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, g := range s.listeners {
		_ = g.Close() // closed already is as good
	}
}

// TLS is the API's own TLS with a certificate: 1.2 or later, HTTP/1.1.
func TLS(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{GetCertificate: certificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
}
