package health

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOneThingMissingIsDegraded(t *testing.T) {
	for _, c := range []struct {
		observed Observed
		want     Status
	}{
		{Observed{true, true, true, nil}, Healthy},
		{Observed{false, true, true, nil}, Degraded},
		{Observed{true, false, true, nil}, Degraded},
		{Observed{true, true, false, nil}, Degraded},
		{Observed{true, true, true, []Reason{{Code: Oversold}, {Code: ClientsWaiting}}}, Healthy},
		{Observed{true, true, true, []Reason{{Code: Oversold}, {Code: LoginFailing}}}, Degraded},
		{Observed{}, Degraded},
	} {
		if got := StatusOf(c.observed); got != c.want {
			t.Errorf("%+v is %s, want %s", c.observed, got, c.want)
		}
	}
}

func TestPretty(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 1<<20 - 1: "1.0 MiB",
		5 << 30: "5.0 GiB", 1 << 40: "1.0 TiB", math.MaxInt64: "8.0 EiB", -2048: "-2.0 KiB",
	} {
		if got := Pretty(bytes); got != want {
			t.Errorf("Pretty(%d) = %q, want %q", bytes, got, want)
		}
	}
}

func TestPrettyIsNearAndShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Int64Range(0, math.MaxInt64).Draw(t, "bytes")
		number, unit, _ := strings.Cut(Pretty(bytes), " ")
		size, err := strconv.ParseFloat(number, 64)
		if err != nil || size >= 1024 {
			t.Fatalf("%s %s", number, unit)
		}
		factor := 1.0
		for _, u := range units {
			if u == unit {
				break
			}
			factor *= 1024
		}
		if off := math.Abs(size*factor - float64(bytes)); off > 0.0501*factor {
			t.Fatalf("%s %s is %g bytes off %d", number, unit, off, bytes)
		}
	})
}

func TestPercent(t *testing.T) {
	for _, c := range [][3]int64{
		{0, 100, 0}, {1, 3, 33}, {2, 3, 67}, {100, 100, 100}, {5, 0, 0}, {5, -1, 0}, {math.MaxInt64, math.MaxInt64, 100},
	} {
		if got := Percent(c[0], c[1]); int64(got) != c[2] {
			t.Errorf("Percent(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
