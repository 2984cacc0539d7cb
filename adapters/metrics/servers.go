package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Server is what a host last saw of the agent of a server.
type Server struct {
	ID         id.ServerID
	Name       string
	Up         bool
	AnsweredAt time.Time            // 0: not since the host started
	Protocol   int                  // 0 where the agent did not say
	State      *command.ServerState // likewise nil
}

// seen is the metrics of what a host sees of the agents, from memory.
type seen struct {
	servers func() []Server
	counted *Counters

	up, answered, protocol, charge, postgres, pooler, steps, backups *prometheus.Desc
}

// MeasureServers adds what a host sees of the agents to its metrics, and what has been counted of their servers. A server is
// there once it was asked.
func MeasureServers(r Registry, servers func() []Server, counted *Counters) error {
	return r.Register(seen{
		servers: servers, counted: counted,
		up: describe("pgherd_server_agent_up",
			"1 if the agent of a server answered this host when it last asked, which it does every 5 s.", "server"),
		answered: describe("pgherd_server_agent_answered_timestamp_seconds",
			"When the agent of a server last answered this host; 0 if it has not since the host started.", "server"),
		protocol: describe("pgherd_server_agent_protocol_agrees",
			"1 if the agent of a server has the protocol of this host; otherwise work for the server waits.", "server"),
		charge: describe("pgherd_server_agent_in_charge",
			"1 if the agent of a server carries out commands, as far as it says.", "server"),
		postgres: describe("pgherd_server_postgres_up",
			"1 if PostgreSQL of a server answers its agent, as far as that says.", "server"),
		pooler: describe("pgherd_server_pgbouncer_up",
			"1 if PgBouncer of a server answers its agent, as far as that says.", "server"),
		steps: describe("pgherd_server_steps_total",
			"Steps of the work on a server that an operator is told of, by what happened.", "server", "what"),
		backups: describe("pgherd_backups_failed_total",
			"Backups of databases of a server that have failed, by reason: not_verified (what was written does not come back equal), "+
				"storage_full, storage_away, other.", "server", "reason"),
	})
}

// Describe implements prometheus.Collector.
func (w seen) Describe(out chan<- *prometheus.Desc) {
	for _, metric := range []*prometheus.Desc{
		w.up, w.answered, w.protocol, w.charge, w.postgres, w.pooler, w.steps, w.backups,
	} {
		out <- metric
	}
}

// Collect implements prometheus.Collector.
func (w seen) Collect(out chan<- prometheus.Metric) {
	for _, s := range w.servers() {
		set := func(of *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, s.Name)
		}
		set(w.up, OneOrZero(s.Up))
		answered := 0.0
		if !s.AnsweredAt.IsZero() {
			answered = float64(s.AnsweredAt.UnixMilli()) / 1000
		}
		set(w.answered, answered)
		if s.Protocol != 0 {
			set(w.protocol, OneOrZero(s.Protocol == command.Protocol))
		}
		if s.State != nil {
			set(w.charge, OneOrZero(s.State.InCharge))
			set(w.postgres, OneOrZero(s.State.Postgres))
			set(w.pooler, OneOrZero(s.State.PgBouncer))
		}
		for _, what := range ofServers {
			out <- prometheus.MustNewConstMetric(w.steps, prometheus.CounterValue, w.counted.of(s.ID, what), s.Name, what)
		}
		for _, reason := range backupReasons {
			out <- prometheus.MustNewConstMetric(w.backups, prometheus.CounterValue, w.counted.of(s.ID, noBackup+reason), s.Name, reason)
		}
	}
}
