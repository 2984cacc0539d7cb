package health

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
)

// brokenHost fails the part that it names, or hangs in it and overlooks its context.
type brokenHost struct {
	Host
	fails, hangs string
}

func (b brokenHost) trouble(part string) error {
	if b.hangs == part {
		select {}
	}
	if b.fails == part {
		return errors.New(part + " is out of order")
	}
	return nil
}

func (b brokenHost) Memory(ctx context.Context) (*protocol.Memory, error) {
	if err := b.trouble("memory"); err != nil {
		return nil, err
	}
	return b.Host.Memory(ctx)
}

func (b brokenHost) Load(ctx context.Context) (*protocol.Load, error) {
	if err := b.trouble("load"); err != nil {
		return nil, err
	}
	return b.Host.Load(ctx)
}

type somePooler struct{ err error }

func (p somePooler) Pools(context.Context) ([]protocol.PgBouncerPool, error) {
	return []protocol.PgBouncerPool{{Database: "shop"}}, p.err
}

func (p somePooler) Clients(context.Context) ([]protocol.PgBouncerClient, error) {
	clients := []protocol.PgBouncerClient{}
	for _, state := range []string{"active", "idle", "waiting", "active_cancel_req"} {
		clients = append(clients, protocol.PgBouncerClient{Database: "shop", State: state})
	}
	return clients, p.err
}

// silent is a PostgreSQL that takes connections and never answers.
func silent(t *testing.T) *sql.DB {
	t.Helper()
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	host, port, _ := net.SplitHostPort(l.Addr().String())
	return check.Must(sql.Open("postgres", "host="+host+" port="+port+" user=x sslmode=disable"))(t)
}

func TestReportNeverHangsAndSaysWhatIsMissing(t *testing.T) {
	c := &Collector{Machine: brokenHost{Host: Host{DataDir: "/"}, hangs: "load", fails: "memory"}, Maintenance: silent(t),
		Pooler: somePooler{}}
	began := time.Now()
	report, err := c.Report(t.Context())
	if took := time.Since(began); took > partTime+time.Second {
		t.Errorf("took %s", took)
	}
	for _, part := range []string{"memory", "load", "PostgreSQL", "data size"} {
		if err == nil || !strings.Contains(err.Error(), "health: "+part+": ") {
			t.Errorf("the error does not name %s: %v", part, err)
		}
	}
	if report.Status != "degraded" || report.PostgresConnected || !report.PgBouncerRunning ||
		report.Load != nil || report.Memory != nil {
		t.Errorf("%+v", report)
	}
	check.NoError(t, c.AddClients(t.Context(), &report))
	if report.ServerDisk.TotalBytes == 0 || report.PgBouncerPoolCount != 1 || report.PgBouncerClientCount != 4 ||
		report.PgBouncerActiveClientCount != 2 {
		t.Errorf("what could be collected is missing: %+v", report)
	}
}

func TestPoolerDownIsDegradedWithEmptyLists(t *testing.T) {
	c := &Collector{Machine: Host{DataDir: "/"}, Maintenance: silent(t), Pooler: somePooler{errors.New("down")}}
	report, _ := c.Report(t.Context())
	text := check.Must(json.Marshal(report))(t)
	if report.PgBouncerRunning || report.Status != "degraded" || report.PgBouncerClientCount != 0 ||
		!strings.Contains(string(text), `"pgbouncer_pools":[],"pgbouncer_clients":[]`) {
		t.Errorf("%s", text)
	}
}

func TestHostFiguresAreTheMachines(t *testing.T) {
	host, ctx := Host{DataDir: t.TempDir()}, t.Context()
	disk, err := host.Disk(ctx)
	if err != nil || disk.TotalBytes <= 0 || disk.UsedBytes+disk.FreeBytes > disk.TotalBytes || disk.UsedPercent > 100 {
		t.Errorf("%+v, %v", disk, err)
	}
	memory, err := host.Memory(ctx)
	if err != nil || memory.TotalBytes < 1<<26 || memory.AvailableBytes > memory.TotalBytes || memory.TotalPretty == "" {
		t.Errorf("%+v, %v", memory, err)
	}
	load, err := host.Load(ctx)
	if err != nil || load.OneMinute < 0 || load.FifteenMinutes < 0 {
		t.Errorf("%+v, %v", load, err)
	}
	if _, err := (Host{DataDir: "/no/such/folder"}).Disk(ctx); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// TestFieldsAreExactlyTheSpecs holds the names of the spec's table, and of what is beside them.
func TestFieldsAreExactlyTheSpecs(t *testing.T) {
	text, err := json.Marshal(protocol.Health{
		Memory: &protocol.Memory{}, Load: &protocol.Load{},
		PgBouncerPools: []protocol.PgBouncerPool{{}}, PgBouncerClients: []protocol.PgBouncerClient{{}},
		Reasons: []protocol.HealthReason{{}}, Checks: []protocol.HealthCheck{{}},
	})
	check.NoError(t, err)
	var got map[string]any
	check.NoError(t, json.Unmarshal(text, &got))
	sameNames(t, got, "status postgres_connected pgbouncer_running "+
		"server_disk_total_bytes server_disk_total_pretty server_disk_used_bytes server_disk_used_pretty "+
		"server_disk_free_bytes server_disk_free_pretty server_disk_used_percent "+
		"postgres_data_used_bytes postgres_data_used_pretty postgres_managed_database_count memory load "+
		"pgbouncer_pool_count pgbouncer_client_count pgbouncer_active_client_count pgbouncer_pools pgbouncer_clients "+
		"disk_total_bytes disk_total_pretty disk_used_bytes disk_used_pretty disk_used_percent disk_free_bytes disk_free_pretty "+
		"reasons checks")
	sameNames(t, got["memory"], "total_bytes total_pretty used_bytes used_pretty available_bytes available_pretty used_percent")
	sameNames(t, got["load"], "one_minute five_minutes fifteen_minutes")
	sameNames(t, got["pgbouncer_pools"].([]any)[0], "database user client_active client_waiting server_active server_idle")
	sameNames(t, got["reasons"].([]any)[0], "code message")
	sameNames(t, got["checks"].([]any)[0], "name ok age_seconds")
	sameNames(t, got["pgbouncer_clients"].([]any)[0], "database user client_addr application_name connected_at state")
}

func sameNames(t *testing.T, object any, want string) {
	t.Helper()
	got := slices.Sorted(maps.Keys(object.(map[string]any)))
	if wanted := slices.Sorted(slices.Values(strings.Fields(want))); !slices.Equal(got, wanted) {
		t.Errorf("fields\n%v\nwant\n%v", got, wanted)
	}
}
