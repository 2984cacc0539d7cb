package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/core/brake"
)

// MeasureBrake adds what the brake of a host holds to its metrics.
func MeasureBrake(r Registry, on func(brake.Reason) bool) error {
	for _, reason := range brake.Reasons() {
		err := r.Gauge("pgherd_brake_on", "1 while this host holds what goes by time, or destroys, for a reason.",
			prometheus.Labels{"reason": string(reason)}, func() float64 { return OneOrZero(on(reason)) })
		if err != nil {
			return err
		}
	}
	return nil
}
