package wiring

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/ports"
)

// stuckChanges counts, at each scrape, the changes of logins that their servers refuse for good.
type stuckChanges struct {
	store *postgres.Store
	count *prometheus.Desc
}

// WatchStuckChanges adds that number to the metrics of a host.
func WatchStuckChanges(r Registry, store *postgres.Store) error {
	return r.Register(stuckChanges{store: store, count: prometheus.NewDesc("pgherd_role_changes_stuck",
		"Pending changes of logins that their server refuses for good: each blocks its database until an operator acts.", nil, nil)})
}

// Describe implements prometheus.Collector.
func (s stuckChanges) Describe(out chan<- *prometheus.Desc) { out <- s.count }

// Collect implements prometheus.Collector. While the metadata database does not answer, there is no figure.
func (s stuckChanges) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	var n int
	err := s.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		n, err = tx.RoleChanges().Stuck(ctx)
		return err
	})
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.count, err)
		return
	}
	out <- prometheus.MustNewConstMetric(s.count, prometheus.GaugeValue, float64(n))
}
