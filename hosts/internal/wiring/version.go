package wiring

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/hosts/internal/version"
)

func buildInfo() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pgherd_build_info", Help: "1, with what this program was built from and with.",
		ConstLabels: prometheus.Labels{
			"version": version.Version(), "revision": version.Revision(), "goversion": runtime.Version(),
		},
	}, func() float64 { return 1 })
}
