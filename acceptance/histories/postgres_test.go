package histories

import (
	"os"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

func TestMain(m *testing.M) {
	sample.Tests(3)
	os.Exit(clustertest.Main(m))
}

// onPostgres is a setting whose store is a database of its own on a real server: its locks, constraints and repeated transactions
// are what the store in memory stands for.
func onPostgres(t *testing.T) setting {
	return setting{store: func() (ports.Store, ports.Admissions) {
		t.Helper()
		db := clustertest.NewDatabase(t)
		ok(t, postgres.Migrate(t.Context(), db.URL))
		// A busy machine must not look like an outage: these histories expect every call to be answered.
		config := postgres.Config{URL: db.URL, ConnectTimeout: time.Minute, StatementTimeout: time.Minute}
		store := must(postgres.Open(t.Context(), config))(t)
		t.Cleanup(func() { ok(t, store.Close()) })
		return store, store
	}}
}
