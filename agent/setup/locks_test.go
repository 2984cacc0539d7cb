package setup_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// A server whose table of locks one session fills at once is a warning, and one where locks stay without a session is refused.
func TestInitLooksAtTheTableOfLocks(t *testing.T) {
	options := func(pg *cluster.Postgres) setup.Options {
		return setup.Options{
			DSN: pg.URL("postgres"), CredentialsFile: filepath.Join(t.TempDir(), "credentials"),
			Versions: anyVersion, Languages: anyLanguage,
		}
	}
	small := clustertest.New(t, map[string]string{"max_locks_per_transaction": "64"})
	report := check.Must(setup.Init(t.Context(), options(small)))(t)
	if !slices.ContainsFunc(report.Warnings, func(w string) bool {
		return strings.Contains(w, "16000 things") && strings.Contains(w, "max_locks_per_transaction to 800 ")
	}) {
		t.Errorf("warnings %q", report.Warnings)
	}
	prepares := clustertest.New(t, map[string]string{"max_prepared_transactions": "2"})
	if _, err := setup.Init(t.Context(), options(prepares)); err == nil || !strings.Contains(err.Error(), "max_prepared_tr") {
		t.Errorf("with prepared transactions: %v", err)
	}
}
