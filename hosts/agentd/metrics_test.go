package agentd

import (
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// crowded is an agent whose PgBouncer holds many clients, and that has much to do.
type crowded struct{}

func (crowded) Programs() []command.Program { return nil }
func (crowded) Languages() []agent.Language { return nil }
func (crowded) InCharge() bool              { return true }
func (crowded) PoolerAnswers() bool         { return true }
func (crowded) Clients() agent.ClientCount {
	return agent.ClientCount{Now: 240, Limit: 350, Idle: 105, Waiting: 7}
}

func (crowded) PoolerUsers() int64          { return 1200 }
func (crowded) PoolerMemory() (int64, bool) { return 129 << 20, true }
func (crowded) JobCount() (int, int)        { return 4, 96 }
func (crowded) Unmeasured() int             { return 3 }

func TestAnAgentIsMeasured(t *testing.T) {
	r := prometheus.NewRegistry()
	check.NoError(t, Measure(wiring.Registry{Registerer: r, Gatherer: r}, func() Measured { return crowded{} }))
	families := check.Must(r.Gather())(t)
	var got []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			line := f.GetName()
			for _, l := range m.GetLabel() {
				line += " " + l.GetName() + "=" + l.GetValue()
			}
			got = append(got, fmt.Sprint(line, " ", m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	for _, want := range []string{
		"pgherd_agent_pgbouncer_clients 240", "pgherd_agent_pgbouncer_clients_limit 350",
		"pgherd_agent_pgbouncer_clients_ended_total reason=idle 105", "pgherd_agent_pgbouncer_clients_ended_total reason=waiting 7",
		"pgherd_agent_pgbouncer_former_users 1200", "pgherd_agent_pgbouncer_resident_memory_bytes 1.35266304e+08",
		"pgherd_agent_jobs state=running 4", "pgherd_agent_jobs state=waiting 96",
		"pgherd_agent_databases_unmeasured 3",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}
