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
		(id, name, role_model, connection_cap, made_by, open, backup_key)
		SELECT n::text, 'd' || n, 'single_login', CASE n WHEN 1 THEN 0 ELSE 20 END, 'o', true, decode(repeat('6b', 32), 'hex')
		FROM generate_series(1, 3) n`)
	warned := func(what string, wants ...string) {
		t.Helper()
		report := check.Must(setup.Init(t.Context(), o))(t)
		i := slices.IndexFunc(report.Warnings, about)
		for _, want := range wants {
			if i < 0 || !strings.Contains(report.Warnings[i], want) {
				t.Errorf("%s with 100 connections: %v, want %q", what, report.Warnings, want)
			}
		}
	}
	warned("2 databases of 20 and one without a cap", "can take 115", "to 132 or more")
	clustertest.Exec(t, pg.URL(setup.MaintenanceDatabase), `INSERT INTO ledger.role (name, oid, database_id, part)
		SELECT 'g' || n, n, n::text, 'read_group' FROM generate_series(1, 2) n`)
	warned("when two of them have additional roles", "can take 175", "to 192 or more")
}
