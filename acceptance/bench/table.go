package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// row is one figure with its baseline and its limit.
type row struct {
	measure  string
	ours     fmt.Stringer
	baseline fmt.Stringer // nil where there is none
	ratio    float64      // 0 where the limit is no ratio
	limit    string
	met      bool
}

func (r row) cells() []string {
	cells := []string{r.measure, r.ours.String(), "", "", r.limit, "ok"}
	if r.baseline != nil {
		cells[2] = r.baseline.String()
	}
	if r.ratio != 0 {
		cells[3] = fmt.Sprintf("%.2f", r.ratio)
	}
	if !r.met {
		cells[5] = "MISSED"
	}
	return cells
}

// section is what one part has measured.
type section struct {
	part
	rows []row
	load string // of the machine, after the part
}

type table []section

func (t table) String() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "\n\tmeasure\tpgherd\tbaseline\tratio\tlimit\t\tload\n")
	for _, s := range t {
		for _, r := range s.rows {
			_, _ = fmt.Fprintln(w, strings.Join(slices.Concat([]string{s.name}, r.cells(), []string{s.load}), "\t"))
		}
	}
	_ = w.Flush() // into memory
	return out.String()
}

// atMost is a row whose ratio of ours to baseline may not pass a limit.
func atMost(measure string, ours, baseline fmt.Stringer, ratio, limit float64) row {
	return row{measure, ours, baseline, ratio, fmt.Sprintf("≤ %.2f", limit), ratio <= limit}
}

// below is a row whose figure stays below a limit, beside its baseline.
func below[T interface {
	cmp.Ordered
	fmt.Stringer
}](measure string, ours T, baseline fmt.Stringer, limit T) row {
	return row{measure, ours, baseline, 0, "< " + limit.String(), ours < limit}
}

// told is a row without a limit.
func told(measure string, ours, baseline fmt.Stringer) row {
	return row{measure: measure, ours: ours, baseline: baseline, met: true}
}

func median[T cmp.Ordered](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// span is a time to print with three digits or so.
type span time.Duration

func (s span) String() string {
	switch d := time.Duration(s); {
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	default:
		return d.Round(10 * time.Millisecond).String()
	}
}

// amount is a number of bytes, to print in units of 1024.
type amount int64

const (
	kibibyte amount = 1 << 10
	mebibyte amount = 1 << 20
)

func (b amount) String() string {
	if b < mebibyte && b > -mebibyte {
		return fmt.Sprintf("%.1f KiB", float64(b)/float64(kibibyte))
	}
	return fmt.Sprintf("%.1f MiB", float64(b)/float64(mebibyte))
}

// rate is a number a second, and number one that is counted.
type (
	rate   float64
	number int
)

func (r rate) String() string { return fmt.Sprintf("%.0f/s", float64(r)) }

func (n number) String() string { return strconv.Itoa(int(n)) }
