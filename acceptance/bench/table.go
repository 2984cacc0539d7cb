package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// row is one figure with its baseline and its limit.
type row struct {
	measure  string
	ours     string
	baseline string
	ratio    string // empty where the limit is no ratio
	limit    string
	met      bool
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
			verdict := "ok"
			if !r.met {
				verdict = "MISSED"
			}
			cells := []string{s.name, r.measure, r.ours, r.baseline, r.ratio, r.limit, verdict, s.load}
			_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
	}
	_ = w.Flush() // into memory
	return out.String()
}

// atMost is a row whose ratio of ours to baseline may not pass a limit.
func atMost(measure string, ours, baseline fmt.Stringer, ratio, limit float64) row {
	return row{
		measure: measure, ours: ours.String(), baseline: baseline.String(), ratio: fmt.Sprintf("%.2f", ratio),
		limit: fmt.Sprintf("≤ %.2f", limit), met: ratio <= limit,
	}
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

const mebibyte = 1 << 20

func (b amount) String() string { return fmt.Sprintf("%.1f MiB", float64(b)/mebibyte) }
