package pooler

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/health"
)

func TestHealthReportOfRealServers(t *testing.T) {
	s := realStack(t)
	collector := &health.Collector{Machine: health.Host{DataDir: s.dir}, Maintenance: s.super, Pooler: Report{s.pooler.Console}}
	db := s.client("shop", "shop", "application_name=till")
	defer db.Close()
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err := collector.Report(t.Context())
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
	if client.Database != "shop" || client.User != "shop" || client.ClientAddr != "127.0.0.1" || client.ApplicationName != "till" {
		t.Errorf("client %+v", client)
	}
	for _, pool := range report.PgBouncerPools {
		if pool.Database == adminDatabase {
			t.Error("the console is listed as a pool")
		}
	}
}

func TestHealthReportWithPgBouncerStopped(t *testing.T) {
	s := realStack(t)
	collector := &health.Collector{Machine: health.Host{DataDir: s.dir}, Maintenance: s.super, Pooler: Report{s.pooler.Console}}
	freeze(t, s)
	began := time.Now()
	report, err := collector.Report(t.Context())
	if err == nil || report.Status != "degraded" || !report.PostgresConnected || report.PgBouncerRunning {
		t.Errorf("%+v, %v", report, err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("took %s", took)
	}
}
