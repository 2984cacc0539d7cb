package agentd

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/commons"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/endless"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/guard"
	"github.com/pgherd/pgherd/agent/health"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	core "github.com/pgherd/pgherd/core/health"
)

// crowded is an agent whose PgBouncer holds many clients, and that has much to do.
type crowded struct{}

func (crowded) Programs() []command.Program         { return nil }
func (crowded) Languages() []floors.LanguageVerdict { return nil }
func (crowded) InCharge() bool                      { return true }
func (crowded) PoolerAnswers() bool                 { return true }
func (crowded) Clients() agent.ClientCount {
	return agent.ClientCount{Now: 240, Limit: 350, Idle: 105, Waiting: 7, Memory: 3, MemoryLimit: 1 << 30}
}

func (crowded) PoolerUsers() int64   { return 1200 }
func (crowded) JobCount() (int, int) { return 4, 96 }
func (crowded) Unmeasured() int      { return 3 }
func (crowded) Healthy() bool        { return false }

func (crowded) EndlessEnded() endless.Counts { return endless.Counts{Tasks: 12, Exporters: 5} }

func (crowded) Checks() []health.State {
	return []health.State{
		{Name: agent.CheckOfCharge, Ended: true, OK: true, Succeeded: time.Unix(1_700_000_000, 500_000_000)},
		{Name: agent.CheckOfPostgres, Reason: &core.Reason{Code: core.CheckHangs}},
	}
}

func (crowded) Forwarding() (all, failing int) { return 3, 1 }

func (crowded) Commons() (commons.Figures, bool) {
	return commons.Figures{
		Kept: map[string]int64{"customer": 7000, "database": 150_000_000}, Taken: 99, Bound: 50_000_000, Multixacts: 12, Queue: 0.25,
		CatalogBytes: 4096, Ended: map[commons.Resource]int64{commons.NotifyQueue: 3},
	}, true
}

func (crowded) Figures() agent.Figures {
	memory := int64(129 << 20)
	return agent.Figures{
		PoolerMemory: &memory,
		Connections: &ledger.Capacity{
			ServerConnections: database.ServerConnections{Max: 100, SuperuserReserved: 3, Reserved: 10}, Sold: 130, InUse: 77,
		},
		Guard: guard.Figures{
			Use: &guard.Use{Locks: 500, Most: 6400, PredicateLocks: 20, MostPredicate: 6500}, Ended: map[string]int64{"locks": 12},
		},
		Archive: &archive.Standing{
			Waiting: 48 << 20, Free: 96 << 20, Dropped: 2, Stored: time.Unix(1_700_000_000, 0), Copied: time.Unix(1_600_000_000, 0),
		},
		Waits: &agent.Waits{Clients: 9, Longest: 1500 * time.Millisecond},
		Disks: []agent.Disk{{Of: "data", Size: 1000, Free: 10, Reserve: 100, Files: 50, FilesFree: 7}},
		Held:  []diskroom.Held{{For: "upload", Count: 2, Bytes: 4096}, {For: diskroom.HeldReady, Count: 1}},
	}
}

func TestAnAgentIsMeasured(t *testing.T) {
	r := prometheus.NewRegistry()
	check.NoError(t, Measure(metrics.Registry{Registerer: r, Gatherer: r}, func() Measured { return crowded{} }))
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
		"pgherd_agent_pgbouncer_clients_ended_total reason=memory 3", "pgherd_agent_pgbouncer_memory_limit_bytes 1.073741824e+09",
		"pgherd_agent_pgbouncer_former_users 1200", "pgherd_agent_pgbouncer_resident_memory_bytes 1.35266304e+08",
		"pgherd_agent_jobs state=running 4", "pgherd_agent_jobs state=waiting 96",
		"pgherd_agent_databases_unmeasured 3", "pgherd_agent_forwards 3", "pgherd_agent_forwards_failing 1",
		"pgherd_agent_sessions_ended_total reason=autovacuum 12", "pgherd_agent_sessions_ended_total reason=snapshots 5",
		"pgherd_agent_transaction_ids_kept by=customer 7000", "pgherd_agent_transaction_ids_kept by=database 1.5e+08",
		"pgherd_agent_transaction_ids_kept by=slot 0", "pgherd_agent_transaction_ids_bound 5e+07",
		"pgherd_agent_transaction_ids_taken_total 99", "pgherd_agent_multixact_ids_kept 12",
		"pgherd_agent_notify_queue_usage_ratio 0.25", "pgherd_agent_shared_catalogs_bytes 4096",
		"pgherd_agent_sessions_ended_total reason=notify_queue 3",
		"pgherd_agent_sessions_ended_total reason=shared_catalogs 0",
		"pgherd_agent_in_charge 1", "pgherd_agent_postgres_answers 0", "pgherd_agent_healthy 0",
		"pgherd_agent_health_reason code=check_hangs 1", "pgherd_agent_health_reason code=not_initialized 0",
		"pgherd_agent_check_ok check=charge 1", "pgherd_agent_check_last_success_timestamp_seconds check=charge 1.7000000005e+09",
		"pgherd_agent_check_ok check=postgres 0", "pgherd_agent_check_last_success_timestamp_seconds check=postgres 0",
		"pgherd_agent_postgres_connections 77", "pgherd_agent_postgres_connections_limit 100",
		"pgherd_agent_postgres_connections_sellable 83", "pgherd_agent_postgres_connections_sold 130",
		"pgherd_agent_pgbouncer_clients_waiting 9", "pgherd_agent_pgbouncer_longest_wait_seconds 1.5",
		"pgherd_agent_disk_size_bytes disk=data 1000", "pgherd_agent_disk_free_bytes disk=data 10",
		"pgherd_agent_disk_files_limit disk=data 50", "pgherd_agent_disk_files_free disk=data 7",
		"pgherd_agent_disk_reserve_bytes disk=data 100", "pgherd_agent_room_holders for=upload 2",
		"pgherd_agent_postgres_locks kind=locks 500", "pgherd_agent_postgres_locks kind=predicate_locks 20",
		"pgherd_agent_postgres_locks_limit kind=locks 6400", "pgherd_agent_postgres_locks_limit kind=predicate_locks 6500",
		"pgherd_agent_sessions_ended_total reason=locks 12",
		"pgherd_agent_archive_waiting_bytes 5.0331648e+07", "pgherd_agent_archive_wal_free_bytes 1.00663296e+08",
		"pgherd_agent_archive_stored_timestamp_seconds 1.7e+09", "pgherd_agent_archive_copied_timestamp_seconds 1.6e+09",
		"pgherd_agent_archive_dropped_segments_total 2",
		"pgherd_agent_room_held_bytes for=upload 4096", "pgherd_agent_room_holders for=ready 1",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}

// broken is a collector that fails.
type broken struct{}

var brokenDesc = prometheus.NewDesc("broken", "cannot be collected", nil, nil)

func (broken) Describe(out chan<- *prometheus.Desc) { out <- brokenDesc }
func (broken) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.NewInvalidMetric(brokenDesc, errors.New("broken"))
}

func TestOneBrokenCollectorDoesNotEmptyTheScrape(t *testing.T) {
	r := prometheus.NewRegistry()
	registry := metrics.Registry{Registerer: r, Gatherer: r}
	check.NoError(t, errors.Join(r.Register(broken{}), Measure(registry, func() Measured { return crowded{} })))
	answer := httptest.NewRecorder()
	registry.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if text := answer.Body.String(); answer.Code != 200 || !strings.Contains(text, "\npgherd_agent_in_charge 1\n") {
		t.Errorf("%d %s", answer.Code, text)
	}
}

// The page lists every metric and every reason.
func TestThePageIsComplete(t *testing.T) {
	page := string(check.Must(os.ReadFile("../../docs/operate/monitoring.md"))(t))
	r := prometheus.NewRegistry()
	check.NoError(t, Measure(metrics.Registry{Registerer: r, Gatherer: r}, func() Measured { return crowded{} }))
	for _, family := range check.Must(r.Gather())(t) {
		if !strings.Contains(page, "`"+family.GetName()) {
			t.Errorf("%s is missing", family.GetName())
		}
	}
	for _, code := range core.Codes {
		if !strings.Contains(page, "| `"+string(code)+"` |") {
			t.Errorf("%s is missing", code)
		}
	}
}
