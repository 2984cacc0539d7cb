package pooler

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/health"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/hosts/cluster"
)

func (s *stack) collector() *health.Collector {
	return &health.Collector{Machine: health.Host{DataDir: s.dir}, Maintenance: s.super, Pooler: NewReport(s.pooler.Console)}
}

// reported is what GET /health has of the servers.
func (s *stack) reported(t *testing.T) (protocol.Health, error) {
	t.Helper()
	c := s.collector()
	report, err := c.Report(t.Context())
	return report, errors.Join(err, c.AddClients(t.Context(), &report))
}

func TestHealthReportOfRealServers(t *testing.T) {
	s := realStack(t)
	db := s.client("shop", "shop", "application_name="+strings.Repeat("t", 5000))
	defer db.Close()
	check.NoError(t, db.PingContext(t.Context()))
	report, err := s.reported(t)
	if err != nil || report.Status != "healthy" || !report.PostgresConnected || !report.PgBouncerRunning {
		t.Fatalf("%+v, %v", report, err)
	}
	if report.PostgresDataUsedBytes < 1<<20 || report.PostgresManagedDatabases != 2 {
		t.Errorf("data %d in %d databases", report.PostgresDataUsedBytes, report.PostgresManagedDatabases)
	}
	if len(report.PgBouncerClients) != 1 || report.PgBouncerActiveClientCount != 1 {
		t.Fatalf("clients %+v", report.PgBouncerClients)
	}
	client := report.PgBouncerClients[0]
	if client.Database != "shop" || client.User != "shop" || client.ClientAddr != "127.0.0.1" ||
		client.ApplicationName != strings.Repeat("t", 63) {
		t.Errorf("client %+v", client)
	}
	for _, pool := range report.PgBouncerPools {
		if pool.Database == adminDatabase {
			t.Error("the console is listed as a pool")
		}
	}
}

func TestPgBouncerIsTheOneOfTheTools(t *testing.T) {
	s := realStack(t)
	console, err := sql.Open("postgres", fmt.Sprintf("host='%s' port=%d user='%s' password='%s' dbname=%s sslmode=disable",
		s.settings.SocketDir, s.settings.ListenPort, s.settings.AdminUser, s.settings.AdminPassword, adminDatabase))
	check.NoError(t, err)
	defer console.Close()
	check.NoError(t, cluster.CheckPooler(t.Context(), console))
}

// TestClientsWithoutServerConnectionAreActive counts a client before its first statement, one after it, and one between two
// transactions, whatever this version of PgBouncer calls them.
func TestClientsWithoutServerConnectionAreActive(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	silent := check.Must(dial(ctx, s.settings, "shop", "shop", "shop-pw"))(t)
	defer silent.close()
	for _, entry := range EntryNames("shop") {
		db := s.client(entry, "shop", "")
		defer db.Close()
		check.Must(db.ExecContext(ctx, "SELECT 1"))(t)
	}
	report, err := s.reported(t)
	if err != nil || report.PgBouncerClientCount != 3 || report.PgBouncerActiveClientCount != 3 {
		t.Errorf("%d active of %+v, %v", report.PgBouncerActiveClientCount, report.PgBouncerClients, err)
	}
	var active int64
	for _, pool := range report.PgBouncerPools {
		active += pool.ClientActive
	}
	if active != 3 {
		t.Errorf("%d active in the pools %+v", active, report.PgBouncerPools)
	}
}

func TestHealthReportWithPgBouncerStopped(t *testing.T) {
	s := realStack(t)
	freeze(t, s)
	began := time.Now()
	report, err := s.collector().Report(t.Context())
	if err == nil || report.Status != "degraded" || !report.PostgresConnected || report.PgBouncerRunning {
		t.Errorf("%+v, %v", report, err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("took %s", took)
	}
}
