package wiring

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/ports"
)

// backlog measures, at each scrape, what webhooks have yet to deliver.
type backlog struct {
	store *postgres.Store
	clock *system.Clock
	open  *prometheus.Desc
	age   *prometheus.Desc
}

// WatchBacklog adds the webhooks' backlog to the metrics of a host.
func WatchBacklog(r Registry, store *postgres.Store, clock *system.Clock) error {
	return r.Register(backlog{
		store: store, clock: clock,
		open: prometheus.NewDesc("pgherd_webhooks_undelivered", "Events and deliveries that wait to be delivered.", nil, nil),
		age: prometheus.NewDesc("pgherd_webhooks_oldest_undelivered_seconds",
			"Age of the oldest event or delivery that waits; 0 when nothing does.", nil, nil),
	})
}

// Describe implements prometheus.Collector.
func (b backlog) Describe(out chan<- *prometheus.Desc) {
	out <- b.open
	out <- b.age
}

// scrapeLimit bounds the query of one scrape.
const scrapeLimit = 2 * time.Second

// Collect implements prometheus.Collector. While the metadata database does not answer, there are no figures.
func (b backlog) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	var now ports.WebhookBacklog
	err := b.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		now, err = tx.Deliveries().Backlog(ctx)
		return err
	})
	if err != nil {
		out <- prometheus.NewInvalidMetric(b.open, err)
		return
	}
	age := 0.0
	if now.Oldest != nil {
		age = max(0, b.clock.Now().Sub(*now.Oldest).Seconds())
	}
	out <- prometheus.MustNewConstMetric(b.open, prometheus.GaugeValue, float64(now.Open))
	out <- prometheus.MustNewConstMetric(b.age, prometheus.GaugeValue, age)
}
