package wiring

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/adapters/traces"
	"github.com/pgherd/pgherd/core/repeat"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/version"
)

// Traces says which traces a host sends, and where; none without an Endpoint.
type Traces struct {
	Endpoint string
	Share    float64
	CAFile   string
}

// Flags gives a command the settings.
func (t *Traces) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.Endpoint, "traces-endpoint", "",
		"URL of a collector that traces are sent to by OTLP over HTTP, such as http://127.0.0.1:4318; empty: there are none")
	f.Float64Var(&t.Share, "traces-share", 0.01,
		"share of the requests and operations that are traced, above 0 and at most 1; the same for all hosts")
	f.StringVar(&t.CAFile, "traces-ca-file", "",
		"certificates in PEM of the authorities that the collector's is checked by; empty: those of the system")
}

// config returns an error where the settings do not fit together.
func (t Traces) config() (c traces.Config, err error) {
	if t.Endpoint == "" {
		if t.CAFile != "" {
			return c, errors.New("--traces-endpoint is missing, without which --traces-ca-file does nothing")
		}
		return c, nil
	}
	if err := traces.CheckEndpoint(t.Endpoint); err != nil {
		return c, fmt.Errorf("--traces-endpoint: %w", err)
	}
	if !(t.Share > 0 && t.Share <= 1) { // NaN is no share either
		return c, errors.New("--traces-share must be above 0, and at most 1")
	}
	c = traces.Config{Endpoint: t.Endpoint, Share: t.Share, Version: version.Version()}
	if t.CAFile == "" {
		return c, nil
	}
	text, err := settings.Authorities("traces-ca-file", t.CAFile)
	if err != nil {
		return c, err
	}
	c.Roots = x509.NewCertPool()
	c.Roots.AppendCertsFromPEM(text)
	return c, nil
}

// Open begins to send the traces of a host, which it calls by its kind.
func (t Traces) Open(lc fx.Lifecycle, log *zap.Logger, r metrics.Registry, kind string) (trace.Tracer, error) {
	c, err := t.config()
	if err != nil {
		return nil, err
	}
	if c.Endpoint == "" {
		return trace.Off{}, nil
	}
	lost := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "pgherd_trace_spans_lost_total",
		Help: "Spans of traces that the collector did not take in time, or for which there was no room.",
	})
	if err := r.Register(lost); err != nil {
		return nil, err
	}
	failures := repeat.New(time.Now)
	c.Service, c.Failed = "pgherd-"+kind, func(spans int, err error) {
		lost.Add(float64(spans))
		if worth, held := failures.Failed(""); worth {
			log.Warn("the collector takes no traces", zap.Int("repeated", held), zap.Error(err))
		}
	}
	sent, err := traces.New(c)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(sent.Close))
	return sent, nil
}
