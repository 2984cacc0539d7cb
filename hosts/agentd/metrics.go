package agentd

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/commons"
	"github.com/pgherd/pgherd/agent/endless"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/health"
	"github.com/pgherd/pgherd/core/command"
)

// Measured is what the metrics of an agent are read from, at each scrape; *agent.Agent implements it.
type Measured interface {
	Programs() []command.Program
	Languages() []floors.LanguageVerdict
	InCharge() bool
	PoolerAnswers() bool
	Clients() agent.ClientCount
	PoolerUsers() (former int64)
	JobCount() (running, waiting int)
	Unmeasured() (databases int)
	EndlessEnded() endless.Counts
	Healthy() bool
	Checks() []health.State
	Figures() agent.Figures
	Commons() (found commons.Figures, fresh bool)
	Forwarding() (all, failing int)
}

type figures struct {
	current  func() Measured
	below    *prometheus.Desc
	up       *prometheus.Desc
	clients  *prometheus.Desc
	limit    *prometheus.Desc
	ended    *prometheus.Desc
	former   *prometheus.Desc
	memory   *prometheus.Desc
	mostMem  *prometheus.Desc
	jobs     *prometheus.Desc
	language *prometheus.Desc
	unknown  *prometheus.Desc
	sessions *prometheus.Desc
	forwards *prometheus.Desc
	nowhere  *prometheus.Desc
	watched  watched
	shared   shared
}

// Measure adds the figures of the agent that current returns to the metrics of its host.
func Measure(r metrics.Registry, current func() Measured) error {
	return r.Register(figures{
		current: current,
		watched: newWatched(),
		shared:  newShared(),
		below: prometheus.NewDesc("pgherd_agent_program_below_floor",
			"1 for a program that is older than the oldest version without known holes, also where the operator has accepted it.",
			[]string{"program", "version", "floor", "accepted"}, nil),
		language: prometheus.NewDesc("pgherd_agent_trusted_language",
			"1 for a trusted procedural language besides plpgsql that an extension offers or a database has, also where the operator "+
				"has accepted it.",
			[]string{"language", "extension", "database", "accepted"}, nil),
		up: prometheus.NewDesc("pgherd_agent_pgbouncer_answers",
			"1 if the agent is in charge of its server and PgBouncer answered when it last looked, which it does every second.", nil, nil),
		clients: prometheus.NewDesc("pgherd_agent_pgbouncer_clients",
			"Clients that PgBouncer held when the agent last looked, which it does every second, those that log in included.", nil, nil),
		limit: prometheus.NewDesc("pgherd_agent_pgbouncer_clients_limit",
			"Clients that PgBouncer admits (--pooler-max-clients).", nil, nil),
		ended: prometheus.NewDesc("pgherd_agent_pgbouncer_clients_ended_total",
			"Clients of accounts with more than their share that were ended to make room for others, "+
				"because they were idle or because they waited for a server connection, or for what they may have held of its memory.",
			[]string{"reason"}, nil),
		former: prometheus.NewDesc("pgherd_agent_pgbouncer_former_users",
			"Users that PgBouncer held at its last reload and that are no longer logins of any database; a restart frees their memory.",
			nil, nil),
		memory: prometheus.NewDesc("pgherd_agent_pgbouncer_resident_memory_bytes",
			"Memory that PgBouncer's process has, where the agent can see the process.", nil, nil),
		mostMem: prometheus.NewDesc("pgherd_agent_pgbouncer_memory_limit_bytes",
			"Memory with which PgBouncer's clients are ended for what they hold (--pooler-memory).", nil, nil),
		jobs: prometheus.NewDesc("pgherd_agent_jobs",
			"Backups and other long jobs that run, at most --jobs, and that wait because as many run, or half as many of their account.",
			[]string{"state"}, nil),
		unknown: prometheus.NewDesc("pgherd_agent_databases_unmeasured",
			"Databases whose size could not be measured when that was last tried: their quota is held to what was measured before.",
			nil, nil),
		sessions: prometheus.NewDesc("pgherd_agent_sessions_ended_total",
			"Customers' sessions, and tasks of autovacuum, that were ended because they took too much of what all databases of the "+
				"server share, or stood in others' way.", []string{"reason"}, nil),
		forwards: prometheus.NewDesc("pgherd_agent_forwards",
			"Databases that the server has left, and for which it sends on who still comes.", nil, nil),
		nowhere: prometheus.NewDesc("pgherd_agent_forwards_failing",
			"Of these, those of which nobody can be sent on: the database's server is away, or does not prove that it is the one.",
			nil, nil),
	})
}

// Describe implements prometheus.Collector.
func (f figures) Describe(out chan<- *prometheus.Desc) {
	out <- f.below
	out <- f.language
	out <- f.up
	out <- f.clients
	out <- f.limit
	out <- f.ended
	out <- f.former
	out <- f.memory
	out <- f.mostMem
	out <- f.jobs
	out <- f.unknown
	out <- f.sessions
	out <- f.forwards
	out <- f.nowhere
	f.watched.describe(out)
	f.shared.describe(out)
}

// Collect implements prometheus.Collector. A program that has not answered yet has no figure.
func (f figures) Collect(out chan<- prometheus.Metric) {
	a := f.current()
	for _, p := range a.Programs() {
		if p.Version != "" {
			out <- prometheus.MustNewConstMetric(f.below, prometheus.GaugeValue, metrics.OneOrZero(p.BelowFloor),
				p.Name, p.Version, p.Floor, strconv.FormatBool(p.Accepted))
		}
	}
	for _, l := range a.Languages() {
		out <- prometheus.MustNewConstMetric(f.language, prometheus.GaugeValue, 1,
			l.Name, l.Extension, l.Database, strconv.FormatBool(l.Accepted))
	}
	out <- prometheus.MustNewConstMetric(f.up, prometheus.GaugeValue, metrics.OneOrZero(a.InCharge() && a.PoolerAnswers()))
	clients := a.Clients()
	out <- prometheus.MustNewConstMetric(f.clients, prometheus.GaugeValue, float64(clients.Now))
	out <- prometheus.MustNewConstMetric(f.limit, prometheus.GaugeValue, float64(clients.Limit))
	out <- prometheus.MustNewConstMetric(f.ended, prometheus.CounterValue, float64(clients.Idle), "idle")
	out <- prometheus.MustNewConstMetric(f.ended, prometheus.CounterValue, float64(clients.Waiting), "waiting")
	out <- prometheus.MustNewConstMetric(f.ended, prometheus.CounterValue, float64(clients.Memory), "memory")
	out <- prometheus.MustNewConstMetric(f.mostMem, prometheus.GaugeValue, float64(clients.MemoryLimit))
	out <- prometheus.MustNewConstMetric(f.former, prometheus.GaugeValue, float64(a.PoolerUsers()))
	running, waiting := a.JobCount()
	out <- prometheus.MustNewConstMetric(f.jobs, prometheus.GaugeValue, float64(running), "running")
	out <- prometheus.MustNewConstMetric(f.jobs, prometheus.GaugeValue, float64(waiting), "waiting")
	out <- prometheus.MustNewConstMetric(f.unknown, prometheus.GaugeValue, float64(a.Unmeasured()))
	forwards, failing := a.Forwarding()
	out <- prometheus.MustNewConstMetric(f.forwards, prometheus.GaugeValue, float64(forwards))
	out <- prometheus.MustNewConstMetric(f.nowhere, prometheus.GaugeValue, float64(failing))
	found := a.Figures()
	taken, fresh := a.Commons()
	f.ends(out, a.EndlessEnded(), found.Guard.Ended, taken.Ended)
	f.watched.collect(out, a.Checks(), a.Healthy(), found)
	if fresh {
		f.shared.collect(out, taken)
	}
	if found.PoolerMemory != nil {
		out <- prometheus.MustNewConstMetric(f.memory, prometheus.GaugeValue, float64(*found.PoolerMemory))
	}
}

// ends are the sessions that were ended, by what they took or where they stood.
func (f figures) ends(
	out chan<- prometheus.Metric, stood endless.Counts, guarded map[string]int64, taken map[commons.Resource]int64,
) {
	count := func(n int64, reason string) {
		out <- prometheus.MustNewConstMetric(f.sessions, prometheus.CounterValue, float64(n), reason)
	}
	count(stood.Tasks, "autovacuum")
	count(stood.Exporters, "snapshots")
	for reason, n := range guarded {
		count(n, reason)
	}
	for _, of := range commons.Resources {
		count(taken[of], string(of))
	}
}
