package agentd

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/agent/commons"
)

// shared are the figures of what all databases of the server share. Where the agent could not look of late they are left out.
type shared struct {
	kept, bound, taken, multixacts, queue, catalogs *prometheus.Desc
}

func newShared() shared {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("pgherd_agent_"+name, help, labels, nil)
	}
	return shared{
		kept: describe("transaction_ids_kept",
			"How many transaction IDs cannot be reused because of the oldest transaction of a kind of session, of a prepared one, of a "+
				"replication slot, or of rows that are not frozen in a database.", "by"),
		bound: describe("transaction_ids_bound",
			"How many a customer's transaction may keep before it is ended (--transaction-ids)."),
		taken:      describe("transaction_ids_taken_total", "Transaction IDs that were taken since the agent looks."),
		multixacts: describe("multixact_ids_kept", "How many multixact IDs cannot be reused because a database may hold the oldest."),
		queue:      describe("notify_queue_usage_ratio", "Part of PostgreSQL's queue of notifications that is in use, from 0 to 1."),
		catalogs:   describe("shared_catalogs_bytes", "Size of the catalogs that all databases share (tablespace pg_global)."),
	}
}

func (s shared) describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.kept, s.bound, s.taken, s.multixacts, s.queue, s.catalogs} {
		out <- d
	}
}

func (s shared) collect(out chan<- prometheus.Metric, found commons.Figures) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, by := range commons.Keepers {
		gauge(s.kept, float64(found.Kept[by]), by)
	}
	gauge(s.bound, float64(found.Bound))
	gauge(s.multixacts, float64(found.Multixacts))
	gauge(s.queue, found.Queue)
	gauge(s.catalogs, float64(found.CatalogBytes))
	out <- prometheus.MustNewConstMetric(s.taken, prometheus.CounterValue, float64(found.Taken))
}
