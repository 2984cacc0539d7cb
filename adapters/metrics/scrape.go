package metrics

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/ports"
)

const (
	// scrapeLimit bounds what one family takes, and scrapesTogether how many are read at the same time: a scrape takes four seconds
	// at worst, while the metadata database hangs.
	scrapeLimit     = 2 * time.Second
	scrapesTogether = 6
	// figuresKept is how long figures are given out again before they are read anew.
	figuresKept = 15 * time.Second
)

// family is metrics that are read together.
type family struct {
	name string
	kept time.Duration // figuresKept where 0
	all  []*prometheus.Desc
	read func(ctx context.Context, now time.Time, set setter) error

	at  time.Time // when it was last read
	now []prometheus.Metric
	err error
}

// setter takes a value of a gauge.
type setter func(of *prometheus.Desc, value float64, labels ...string)

// stored collects families from the metadata database. One that cannot be read is left out; the others are not.
type stored struct {
	clock    func() time.Time
	families []*family
	success  *prometheus.Desc

	mu sync.Mutex // held while one scrape reads for all
}

func newStored(clock func() time.Time, families ...*family) *stored {
	return &stored{clock: clock, families: families, success: prometheus.NewDesc("pgherd_scrape_collector_success",
		"1 if the metrics of a collector could be read when that was last tried; they are left out otherwise.",
		[]string{"collector"}, nil)}
}

// Describe implements prometheus.Collector.
func (s *stored) Describe(out chan<- *prometheus.Desc) {
	out <- s.success
	for _, f := range s.families {
		for _, metric := range f.all {
			out <- metric
		}
	}
}

// Collect implements prometheus.Collector.
func (s *stored) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	for _, f := range s.families {
		out <- prometheus.MustNewConstMetric(s.success, prometheus.GaugeValue, OneOrZero(f.err == nil), f.name)
		for _, metric := range f.now {
			out <- metric
		}
	}
}

// refresh reads what has been kept for long enough. Once the metadata database did not answer, the rest is not asked for.
func (s *stored) refresh() {
	var reading errgroup.Group
	reading.SetLimit(scrapesTogether)
	ctx, gone := context.WithCancelCause(context.Background())
	defer gone(nil)
	for _, f := range s.families {
		kept := f.kept
		if kept == 0 {
			kept = figuresKept
		}
		// While it fails it is tried with every scrape: whoever waits for its end wants to know.
		if now := s.clock(); f.err != nil || f.at.IsZero() || now.Sub(f.at) >= kept || now.Before(f.at) {
			reading.Go(func() error {
				if f.refresh(ctx, now); errors.Is(f.err, ports.ErrUnavailable) {
					gone(f.err)
				}
				return nil
			})
		}
	}
	_ = reading.Wait()
}

func (f *family) refresh(ctx context.Context, now time.Time) {
	f.at, f.now = now, nil
	if f.err = context.Cause(ctx); f.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, scrapeLimit)
	defer cancel()
	var read []prometheus.Metric
	f.err = f.read(ctx, now, func(of *prometheus.Desc, value float64, labels ...string) {
		read = append(read, prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, labels...))
	})
	if f.err == nil {
		f.now = read
	}
}

// tally sets how many there are of something, and the age of the oldest.
func (set setter) tally(count, age *prometheus.Desc, of ports.Tally, now time.Time, labels ...string) {
	set(count, float64(of.Count), labels...)
	set(age, since(now, of.Oldest), labels...)
}

// OneOrZero is the value of a gauge that says whether something is so.
func OneOrZero(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// since is the age of the oldest of something; 0 where there is none.
func since(now time.Time, oldest *time.Time) float64 {
	if oldest == nil {
		return 0
	}
	return max(0, now.Sub(*oldest).Seconds())
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}
