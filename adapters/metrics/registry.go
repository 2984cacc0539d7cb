// Package metrics tells Prometheus what a host knows: what its journal counts, what the metadata database holds, and what it sees
// of the agents.
package metrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Registry collects the metrics of one host.
type Registry struct {
	prometheus.Registerer
	prometheus.Gatherer
}

// NewRegistry makes a registry with the figures of the process, and with what its program was built from.
func NewRegistry(version, revision string) Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "pgherd_build_info", Help: "1, with what this program was built from and with.",
			ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": runtime.Version()},
		}, func() float64 { return 1 }))
	return Registry{r, r}
}

// Labelled is the registry for further figures, each of which has one more label.
func (r Registry) Labelled(name, value string) Registry {
	return Registry{prometheus.WrapRegistererWith(prometheus.Labels{name: value}, r.Registerer), r.Gatherer}
}

// Gauge adds a figure that is read at each scrape, and whose labels stay.
func (r Registry) Gauge(name, help string, labels prometheus.Labels, value func() float64) error {
	return r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
}

// YesOrNo adds a gauge that is 1 while something is so.
func (r Registry) YesOrNo(name, help string, is func() bool) error {
	return r.Gauge(name, help, nil, func() float64 { return OneOrZero(is()) })
}

const (
	// scrapeTime bounds one scrape; Prometheus itself waits 10 s where nothing else is set.
	scrapeTime = 10 * time.Second
	// scrapesAtOnce bounds how many wait for a collector that hangs.
	scrapesAtOnce = 8
)

// Handler answers GET /metrics. A collector that fails takes only its own figures away.
func (r Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, Timeout: scrapeTime, MaxRequestsInFlight: scrapesAtOnce,
		EnableOpenMetrics: true, // else exemplars stay here
	})
}
