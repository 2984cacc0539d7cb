// Package health decides whether a server is healthy, and formats byte sizes for people (spec, section "Agent health").
package health

import (
	"math"
	"strconv"
)

// Status is the overall status in a health report.
type Status string

// The two statuses.
const (
	Healthy  Status = "healthy"
	Degraded Status = "degraded"
)

var units = []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// Pretty writes a byte count in the largest unit of 1,024 that leaves at least 1, with one decimal above bytes: "512 B", "1.5
// GiB". A negative count keeps its sign.
func Pretty(bytes int64) string {
	size, unit := float64(bytes), 0
	// From 1,023.95 on, one decimal would round up to "1024.0".
	for math.Abs(size) >= 1023.95 && unit < len(units)-1 || unit == 0 && math.Abs(size) >= 1024 {
		size, unit = size/1024, unit+1
	}
	if unit == 0 {
		return strconv.FormatInt(bytes, 10) + " " + units[0]
	}
	return strconv.FormatFloat(size, 'f', 1, 64) + " " + units[unit]
}

// Percent is the part of total that is used, rounded to the nearest whole number; 0 where total is not positive.
func Percent(used, total int64) int {
	if total <= 0 {
		return 0
	}
	return int(math.Round(float64(used) * 100 / float64(total)))
}
