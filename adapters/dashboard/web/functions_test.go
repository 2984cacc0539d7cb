package web

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at   time.Duration
		want string
	}{
		{0, "just now"},
		{-9 * time.Second, "just now"},
		{-10 * time.Second, "10 seconds ago"},
		{-59 * time.Second, "59 seconds ago"},
		{-60 * time.Second, "1 minute ago"},
		{-119 * time.Second, "1 minute ago"},
		{-90 * time.Minute, "90 minutes ago"},
		{-2 * time.Hour, "2 hours ago"},
		{-47 * time.Hour, "47 hours ago"},
		{-48 * time.Hour, "2 days ago"},
		{500 * time.Millisecond, "just now"},
		{time.Second, "in 1 second"},
		{3 * time.Minute, "in 3 minutes"},
		{400 * 24 * time.Hour, "in 400 days"},
	} {
		if got := ago(now.Add(c.at), now); got != c.want {
			t.Errorf("%s: %s", c.at, got)
		}
	}
	for at, want := range map[time.Time]string{
		{}: "106751 days ago", time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC): "in 106751 days", // as far as a duration goes
	} {
		if got := ago(at, now); got != want {
			t.Errorf("%s: %s", at, got)
		}
	}
}

// A span names its length, to less than half of it, with a number that people read.
func TestSpan(t *testing.T) {
	units := map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(int64(time.Second), math.MaxInt64).Draw(t, "span"))
		if rapid.Bool().Draw(t, "short") {
			d = d%(100*time.Hour) + time.Second
		}
		number, unit, _ := strings.Cut(Span(d), " ")
		n, err := strconv.ParseInt(number, 10, 64)
		long, known := units[strings.TrimSuffix(unit, "s")]
		if err != nil || !known || n < 1 || (n == 1) == strings.HasSuffix(unit, "s") {
			t.Fatalf("%s is %q", d, Span(d))
		}
		if says := time.Duration(n) * long; says > d || d-says >= long || long < 24*time.Hour && n >= 120 {
			t.Fatalf("%s is %q", d, Span(d))
		}
	})
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 10 << 10: "10.0 KiB", 100 << 10: "100 KiB",
		1023<<10 + 511: "1023 KiB", 1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB", 5 << 30: "5.0 GiB", 1<<30 - 1: "1.0 GiB",
		3 << 40: "3.0 TiB", 1 << 50: "1.0 PiB", math.MaxInt64: "8.0 EiB", 102_348: "99.9 KiB", 102_350: "100 KiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// What is shown of a size is within a twentieth of it, has at most four digits, and grows with it.
func TestBytesAreNear(t *testing.T) {
	read := func(t *rapid.T, n int64) float64 {
		number, unit, _ := strings.Cut(Bytes(n), " ")
		size, err := strconv.ParseFloat(number, 64)
		power := strings.Index("BKMGTPE", unit[:1])
		if err != nil || power < 0 || size > 1023 || len(number) > 4 {
			t.Fatalf("%d is %q", n, Bytes(n))
		}
		return size * math.Pow(1024, float64(power))
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, math.MaxInt64).Draw(t, "size") >> rapid.IntRange(0, 62).Draw(t, "shift")
		more := n + rapid.Int64Range(0, math.MaxInt64-n).Draw(t, "more")
		if shown := read(t, n); math.Abs(shown-float64(n)) > float64(n)/20 || read(t, more) < shown {
			t.Fatalf("%d is %q, %d is %q", n, Bytes(n), more, Bytes(more))
		}
	})
}

// The pattern of a browser matches the text, and nothing else.
func TestTyped(t *testing.T) {
	f := Typed(`a.b*c(d)[e]{f}|g\h^i$j+k?`)
	if f.Pattern != `a\.b\*c\(d\)\[e\]\{f\}\|g\\h\^i\$j\+k\?` || f.Name != confirmField || f.Complete != "off" || f.Optional {
		t.Errorf("%+v", f)
	}
}
