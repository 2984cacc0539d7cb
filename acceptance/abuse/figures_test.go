package abuse_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// most is how much slower than on an idle service a figure may be beside an abuse, and fair that of one that is not slowed down.
const (
	most = 3.0
	fair = 1.5
)

// table holds how long the bystander's requests took: on each idle service or beside one who computes, and beside an abuse of it.
type table struct {
	title    string
	measures []string
	figure   func(measure string, took []time.Duration) time.Duration
	most     float64 // how much slower a figure may be
	rows     []row
}

type row struct {
	abuse      abuse
	idle, took map[string][]time.Duration
}

// add adds a row, and fails the test where a figure of it passes its limit.
func (t *table) add(tb testing.TB, a abuse, idle, took map[string][]time.Duration) {
	tb.Helper()
	r := row{a, idle, took}
	t.rows = append(t.rows, r)
	for _, m := range t.measures {
		if len(took[m]) > 0 && t.ratio(r, m) > t.limit(r, m) {
			tb.Errorf("%s: a %s takes %s, %.2f times as long as on the idle service, more than %.1f",
				t.title, m, short(t.figure(m, took[m])), t.ratio(r, m), t.limit(r, m))
		}
	}
}

// limit is how much slower a figure of a row may be.
func (t *table) limit(r row, measure string) float64 {
	if slices.Contains(r.abuse.fair, measure) {
		return fair
	}
	return t.most
}

// usual is the 99th percentile of what there are a thousand of, and the median of the rest.
func usual(measure string, took []time.Duration) time.Duration {
	if measure == queries || measure == reads {
		return p99(measure, took)
	}
	return median(measure, took)
}

func p99(_ string, took []time.Duration) time.Duration { return ranked(len(took)*99/100, took) }

// median is the lower one of two.
func median(_ string, took []time.Duration) time.Duration { return ranked((len(took)-1)/2, took) }

// ranked is 0 where nothing was measured.
func ranked(rank int, took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(took))[rank]
}

func (t *table) ratio(r row, measure string) float64 {
	return t.figure(measure, r.took[measure]).Seconds() / t.figure(measure, r.idle[measure]).Seconds()
}

func (t *table) String() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "\n%s\t%s\n", t.title, strings.Join(t.measures, "\t"))
	line := func(name string, cell func(measure string) string) {
		cells := []string{name}
		for _, m := range t.measures {
			cells = append(cells, cell(m))
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	for _, r := range t.rows {
		line(r.abuse.name, func(m string) string {
			if len(r.took[m]) == 0 {
				return "-"
			}
			return fmt.Sprintf("%s of %s (%.2f)", short(t.figure(m, r.took[m])), short(t.figure(m, r.idle[m])), t.ratio(r, m))
		})
	}
	_ = w.Flush() // into memory
	return out.String()
}

func short(d time.Duration) string {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}
