package setup_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// A server that cannot hold a database of the largest plan is refused with what to set, and one whose databases can take more
// than it has is prepared with a warning.
func TestTooFewConnectionsForTheLargestPlanAreRefused(t *testing.T) {
	pg := clustertest.New(t, map[string]string{"max_connections": "100"})
	o := setup.Options{
		DSN: pg.URL("postgres"), CredentialsFile: filepath.Join(t.TempDir(), "credentials"),
		Versions: anyVersion, Languages: anyLanguage,
	}
	_, err := setup.Init(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "max_connections is 100") || !strings.Contains(err.Error(), "222 or more") ||
		!strings.Contains(err.Error(), "--largest-plan") {
		t.Errorf("100 connections for a database of 200: %v", err)
	}
	if _, err := os.Stat(o.CredentialsFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused server was prepared: %v", err)
	}
	about := func(w string) bool { return strings.Contains(w, "max_connections") }
	o.LargestPlan = account.Pro
	if report := check.Must(setup.Init(t.Context(), o))(t); slices.ContainsFunc(report.Warnings, about) {
		t.Errorf("without a database: %v", report.Warnings)
	}
	clustertest.Exec(t, pg.URL(setup.MaintenanceDatabase), `INSERT INTO ledger.database
		(id, name, role_model, connection_cap, made_by, open)
		SELECT n::text, 'd' || n, 'single_login', 20, 'o', true FROM generate_series(1, 4) n`)
	report := check.Must(setup.Init(t.Context(), o))(t)
	if i := slices.IndexFunc(report.Warnings, about); i < 0 || !strings.Contains(report.Warnings[i], "can take 100") ||
		!strings.Contains(report.Warnings[i], "to 117 or more") {
		t.Errorf("4 databases of 20 with 100 connections: %v", report.Warnings)
	}
}
