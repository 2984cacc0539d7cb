package settings

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// timePattern is a time as PostgreSQL takes it, and stores it unchanged: an integer as in C (010 and 0x8 are 8) or a fraction, in
// decimal or hexadecimal, and its unit.
var timePattern = regexp.MustCompile(`^[\s\v]*([+-]?(?:0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*(?:[pP][+-]?[0-9]+)?)?|` +
	`[0-9.]+(?:[eE][+-]?[0-9]+)?))[\s\v]*([a-z]*)[\s\v]*$`)

// timeUnits are the units in milliseconds, each with the next smaller one, to which PostgreSQL rounds a fraction first.
var timeUnits = map[string]struct{ one, smaller float64 }{
	"d": {86_400_000, 3_600_000}, "h": {3_600_000, 60_000}, "min": {60_000, 1000}, "s": {1000, 1}, "ms": {1, 0.001},
	"us": {0.001, 0}, "": {1, 0},
}

// inMilliseconds reads a time as PostgreSQL takes it for the timeouts; 0 is none. It need not know what PostgreSQL refuses.
func inMilliseconds(value string) int64 {
	parts := timePattern.FindStringSubmatch(value)
	if parts == nil {
		return 0
	}
	unit := timeUnits[parts[2]]
	n := amountOf(parts[1]) * unit.one
	if unit.smaller > 0 {
		n = math.RoundToEven(n/unit.smaller) * unit.smaller
	}
	return int64(math.RoundToEven(n))
}

func amountOf(text string) float64 {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return float64(n)
	}
	if strings.ContainsAny(text, "xX") && !strings.ContainsAny(text, "pP") {
		text += "p0" // without which Go takes no fraction in hexadecimal
	}
	n, _ := strconv.ParseFloat(text, 64)
	return n
}
