package agentd

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// Measured is what the metrics of an agent are read from, at each scrape; *agent.Agent implements it.
type Measured interface {
	Programs() []protocol.Program
	InCharge() bool
	PoolerAnswers() bool
}

type figures struct {
	agent Measured
	below *prometheus.Desc
	up    *prometheus.Desc
}

// Measure adds an agent's figures to the metrics of its host.
func Measure(r wiring.Registry, a Measured) error {
	return r.Register(figures{
		agent: a,
		below: prometheus.NewDesc("pgherd_agent_program_below_floor",
			"1 for a program that is older than the oldest version without known holes, also where the operator has accepted it.",
			[]string{"program", "version", "floor", "accepted"}, nil),
		up: prometheus.NewDesc("pgherd_agent_pgbouncer_answers",
			"1 if the agent is in charge of its server and PgBouncer answered when it last looked, which it does every second.", nil, nil),
	})
}

// Describe implements prometheus.Collector.
func (f figures) Describe(out chan<- *prometheus.Desc) {
	out <- f.below
	out <- f.up
}

// Collect implements prometheus.Collector. A program that has not answered yet has no figure.
func (f figures) Collect(out chan<- prometheus.Metric) {
	for _, p := range f.agent.Programs() {
		if p.Version != "" {
			out <- prometheus.MustNewConstMetric(f.below, prometheus.GaugeValue, oneOrZero(p.BelowFloor),
				p.Name, p.Version, p.Floor, strconv.FormatBool(p.Accepted))
		}
	}
	out <- prometheus.MustNewConstMetric(f.up, prometheus.GaugeValue, oneOrZero(f.agent.InCharge() && f.agent.PoolerAnswers()))
}

func oneOrZero(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
