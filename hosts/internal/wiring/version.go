package wiring

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Version is the version of this program, as its build recorded it.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// Build is the version with what it was built from and with, for people.
func Build() string {
	out := Version()
	if revision := setting("vcs.revision"); revision != "" {
		out += " (" + revision + ")"
	}
	return out + " " + runtime.Version()
}

func setting(key string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func buildInfo() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pgherd_build_info", Help: "1, with what this program was built from and with.",
		ConstLabels: prometheus.Labels{"version": Version(), "revision": setting("vcs.revision"), "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}
