package web

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/ports"
)

// noPage stands for the name of the page of a request that none serves; a client's own path is never a label.
const noPage = "none"

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer, t table, open *streams) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pgherd_dashboard_requests_total", Help: "Requests answered by the dashboard, by page and status.",
		}, []string{"page", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pgherd_dashboard_request_duration_seconds", Help: "Time to answer a request, without that of streams, by page.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"page"}),
	}
	streaming := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pgherd_dashboard_streams", Help: "Open pages that are told of changes.",
	}, func() float64 { return float64(open.count()) })
	for _, c := range []prometheus.Collector{m.requests, m.seconds, streaming} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	for name := range t.byName { // what appears for the first time with its first failure has not risen, and alerts nobody
		m.requests.WithLabelValues(name, strconv.Itoa(http.StatusInternalServerError))
	}
	return m, nil
}

// observe counts and logs one answered request. The log never has the path, the query or a field: the name says which page it
// was.
func (s *Server) observe(r *Request) {
	name, took := r.pageName(), s.cfg.Now().Sub(r.Now)
	s.metrics.requests.WithLabelValues(name, strconv.Itoa(r.out.status)).Inc()
	if name != liveName {
		s.metrics.seconds.WithLabelValues(name).Observe(took.Seconds())
	}
	fields := []zap.Field{
		zap.String("page", name), zap.Int("status", r.out.status), zap.Duration("took", took), zap.Int64("bytes", r.out.bytes),
		zap.String("requestId", r.ID), zap.Stringer("client", r.Client),
	}
	if r.Caller.IsPerson() {
		fields = append(fields, zap.String("userId", string(r.Caller.UserID())))
	}
	if r.about != "" {
		fields = append(fields, zap.String("databaseId", r.about))
	}
	switch {
	case r.cause == nil:
		s.log.Info("page", fields...)
	case ports.Away(r.cause) && !s.worthALine(&fields):
		s.log.Info("page", fields...)
	default:
		s.cfg.Log.Error("page failed", append(fields, zap.Error(r.cause))...)
	}
}

func (r *Request) pageName() string {
	if r.page == nil {
		return noPage
	}
	return r.page.Name
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

// broken notes that an answer did not come to its end: the client has left, or what was sent has ended.
func (r *Request) broken(err error) {
	r.server.log.Warn("an answer was broken off", zap.String("page", r.pageName()), zap.String("requestId", r.ID), zap.Error(err))
	panic(http.ErrAbortHandler)
}
