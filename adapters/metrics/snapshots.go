package metrics

import (
	"math"
	"time"
)

// MeasureSnapshots adds the time of the newest snapshot of the metadata to a host's metrics.
func MeasureSnapshots(r Registry, newest func() (at time.Time, known bool)) error {
	return r.Gauge("pgherd_metadata_snapshot_timestamp_seconds",
		"When the newest snapshot of the metadata was taken that servers keep, as Unix time; NaN until they have said it.",
		nil, func() float64 {
			at, known := newest()
			switch {
			case !known:
				return math.NaN()
			case at.IsZero(): // there is none
				return 0
			}
			return float64(at.Unix())
		})
}
