package wiring

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/ports"
)

// stored is the metrics that one query of the metadata database gives, at each scrape.
type stored struct {
	store   *postgres.Store
	metrics []*prometheus.Desc
	read    func(ctx context.Context, tx ports.Tx) ([]float64, error) // a value for each
}

// MeasureStore adds to the metrics of a host what webhooks have yet to deliver, which mails wait, how many changes of logins are
// stuck and purges refused, and what databases take.
func MeasureStore(r Registry, store *postgres.Store, clock *system.Clock) error {
	backlog := []*prometheus.Desc{
		prometheus.NewDesc("pgherd_webhooks_undelivered", "Events and deliveries that wait to be delivered.", nil, nil),
		prometheus.NewDesc("pgherd_webhooks_oldest_undelivered_seconds",
			"Age of the oldest event or delivery that waits; 0 when nothing does.", nil, nil),
	}
	stuck := []*prometheus.Desc{prometheus.NewDesc("pgherd_role_changes_stuck",
		"Pending changes of logins that their server refuses for good: each blocks its database until an operator acts.", nil, nil)}
	refused := []*prometheus.Desc{prometheus.NewDesc("pgherd_purges_refused",
		"Deleted databases that their server refuses to purge: each keeps its bytes until an operator acts.", nil, nil)}
	over := []*prometheus.Desc{
		prometheus.NewDesc("pgherd_databases_bytes", "Size of all databases together, as last measured.", nil, nil),
		prometheus.NewDesc("pgherd_databases_full", "Databases that are read-only by default, for the quota of their bytes.", nil, nil),
		prometheus.NewDesc("pgherd_databases_closed",
			"Databases far above the quota of their bytes: nobody can connect until an operator acts.", nil, nil),
	}
	mails := []*prometheus.Desc{
		prometheus.NewDesc("pgherd_mails_waiting", "Mails that wait to be sent.", nil, nil),
		prometheus.NewDesc("pgherd_mails_oldest_waiting_seconds", "Age of the oldest mail that waits; 0 when none does.", nil, nil),
	}
	age := func(oldest *time.Time) float64 {
		if oldest == nil {
			return 0
		}
		return max(0, clock.Now().Sub(*oldest).Seconds())
	}
	return errors.Join(
		r.Register(stored{store, over, func(ctx context.Context, tx ports.Tx) ([]float64, error) {
			t, err := tx.Storage().Totals(ctx)
			return []float64{float64(t.Bytes), float64(t.Full), float64(t.Closed)}, err
		}}),
		r.Register(stored{store, backlog, func(ctx context.Context, tx ports.Tx) ([]float64, error) {
			now, err := tx.Deliveries().Backlog(ctx)
			return []float64{float64(now.Open), age(now.Oldest)}, err
		}}),
		r.Register(stored{store, mails, func(ctx context.Context, tx ports.Tx) ([]float64, error) {
			now, err := tx.Mails().Backlog(ctx)
			return []float64{float64(now.Open), age(now.Oldest)}, err
		}}),
		r.Register(stored{store, stuck, func(ctx context.Context, tx ports.Tx) ([]float64, error) {
			n, err := tx.RoleChanges().Stuck(ctx)
			return []float64{float64(n)}, err
		}}),
		r.Register(stored{store, refused, func(ctx context.Context, tx ports.Tx) ([]float64, error) {
			n, err := tx.Operations().Refused(ctx, deletion.KindPurge)
			return []float64{float64(n)}, err
		}}),
	)
}

// Describe implements prometheus.Collector.
func (s stored) Describe(out chan<- *prometheus.Desc) {
	for _, metric := range s.metrics {
		out <- metric
	}
}

// scrapeLimit bounds the query of one scrape.
const scrapeLimit = 2 * time.Second

// Collect implements prometheus.Collector. While the metadata database does not answer, there are no figures.
func (s stored) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	var values []float64
	err := s.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		values, err = s.read(ctx, tx)
		return err
	})
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.metrics[0], err)
		return
	}
	for i, value := range values {
		out <- prometheus.MustNewConstMetric(s.metrics[i], prometheus.GaugeValue, value)
	}
}
