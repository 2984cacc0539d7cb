package serve

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/httpapi/conn"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/guests"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/ports"
)

// unmatchedRoute stands for the path of a request that no route serves; a client's own path is never a label.
const unmatchedRoute = "unmatched"

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	bytes    *prometheus.CounterVec
	refused  *prometheus.CounterVec
	excess   *prometheus.CounterVec
	broken   *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pgherd_http_requests_total", Help: "Requests answered, by method, route pattern and status.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pgherd_http_request_duration_seconds",
			Help:    "Time from a request's header to the end of its answer, by method, route pattern and class of the status (2xx).",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"method", "route", "status_class"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pgherd_http_response_bytes_total", Help: "Bytes of answers' bodies.",
		}, []string{"route"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pgherd_http_unparsed_total", Help: "Connections closed because what came was no request, by code.",
		}, []string{"code"}),
		excess: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pgherd_http_excess_connections_total",
			Help: "Connections closed because there were too many of the process (bound=all), of one address, or of one network of " +
				"IPv6, or no files left for one more: one without an admitted request (closed=waiting), or else the new one (closed=new).",
		}, []string{"bound", "closed"}),
		broken: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pgherd_http_downloads_broken_off_total",
			Help: "Downloads that did not come to their end, by reason: slow_client, client_gone, or source (the agent).",
		}, []string{"reason"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.bytes, m.refused, m.excess, m.broken} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// begin has every counter at 0 that the routes may count: what appears for the first time with its first failure has not risen,
// and alerts nobody.
func (m *metrics) begin(routes []Route) {
	for i := range routes {
		r := &routes[i]
		m.bytes.WithLabelValues(r.Path)
		for _, code := range r.refusable() {
			m.requests.WithLabelValues(r.Method, r.Path, strconv.Itoa(code.Status()))
		}
		for _, a := range r.Answers {
			m.requests.WithLabelValues(r.Method, r.Path, strconv.Itoa(a.Status))
		}
	}
	for _, code := range []fault.Code{fault.ValidationError, fault.RequestTimeout, fault.HeaderTooLarge} {
		m.refused.WithLabelValues(string(code))
	}
	for _, bound := range []string{guests.BoundOfAll, guests.BoundOfAddress, guests.BoundOfNetwork, conn.BoundOfFiles} {
		m.excess.WithLabelValues(bound, conn.ClosedWaiting)
		m.excess.WithLabelValues(bound, conn.ClosedNew)
	}
	for _, reason := range []string{brokenBySlowness, brokenByClient, brokenBySource} {
		m.broken.WithLabelValues(reason)
	}
}

func (m *metrics) unparsed(err error) { m.refused.WithLabelValues(string(fault.CodeOf(err))).Inc() }

// observe counts and logs one answered request. The log never has the Authorization header, the path or the query: the
// pattern says which route it was.
func (s *Server) observe(r *Request, status int, bytes int64) {
	method, route, took := methodLabel(r), routeLabel(r), time.Since(r.started)
	s.metrics.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	s.observeTime(r, s.metrics.seconds.WithLabelValues(method, route, classOf(status)), took)
	if r.traced != nil {
		r.traced(strconv.Itoa(status), status >= http.StatusInternalServerError)
	}
	s.metrics.bytes.WithLabelValues(route).Add(float64(bytes))
	fields := []zap.Field{
		zap.String("method", method), zap.String("route", route), zap.Int("status", status), zap.Duration("took", took),
		zap.Int64("bytes", bytes), zap.String("key", r.keyPrefix()),
		zap.String("requestId", r.ID), zap.Stringer("client", r.Client),
	}
	fields = append(fields, targetFields(r.Target)...)
	switch {
	case r.cause != nil && r.stream != nil:
		s.metrics.broken.WithLabelValues(r.stream.reason).Inc()
		s.log.Warn("download broken off", append(fields, zap.String("reason", r.stream.reason), zap.Error(r.cause))...)
	case ports.Away(r.cause) && !s.worthALine(&fields):
		s.requests.Info("request", fields...)
	case r.cause != nil:
		s.log.Error("request failed", append(fields, zap.Error(r.cause))...)
	default:
		s.requests.Info("request", fields...)
	}
}

// observeTime notes how long a request took, with its trace where that is kept.
func (s *Server) observeTime(r *Request, in prometheus.Observer, took time.Duration) {
	if exemplars, has := in.(prometheus.ExemplarObserver); has && r.traced != nil {
		if parent := s.tracer.Parent(r.ctx); parent != "" {
			exemplars.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": trace.IDIn(parent)})
			return
		}
	}
	in.Observe(took.Seconds())
}

// worthALine reports whether a failure is to be logged that every request has while the metadata database or the key ring is
// away.
func (s *Server) worthALine(fields *[]zap.Field) bool {
	worth, held := s.outages.Failed("")
	if held > 0 {
		*fields = append(*fields, zap.Int("repeated", held))
	}
	return worth
}

// routeLabel keeps clients from creating arbitrary metric labels, too.
func routeLabel(r *Request) string {
	if r.route != nil {
		return r.route.Path
	}
	return unmatchedRoute
}

func classOf(status int) string { return strconv.Itoa(status/100) + "xx" }

// targetFields name what a request was about, so that the log can be read for one database.
func targetFields(target any) (fields []zap.Field) {
	if t, is := target.(interface{ Record() database.Record }); is {
		fields = append(fields, zap.String("databaseId", string(t.Record().ID)))
	}
	if s, is := target.(database.Summary); is {
		fields = append(fields, zap.String("databaseId", string(s.ID)))
	}
	if t, is := target.(interface{ Operation() operation.Operation }); is {
		fields = append(fields, zap.String("operationId", string(t.Operation().ID)))
	}
	return fields
}

// keyPrefix is the part of the key that may be shown; empty without a valid key.
func (r *Request) keyPrefix() string {
	if !r.Caller.Known() {
		return ""
	}
	return r.Caller.Key.Prefix()
}

// methodLabel keeps clients from creating arbitrary metric labels.
func methodLabel(r *Request) string {
	if r.route != nil {
		return r.route.Method
	}
	if m := string(r.raw.Method()); slices.Contains(fiber.DefaultMethods, m) {
		return m
	}
	return "OTHER"
}
