package postgres_test

import (
	"database/sql"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// migrated is an empty database with the schema.
func migrated(t testing.TB) clustertest.Database {
	t.Helper()
	db := clustertest.NewDatabase(t)
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	return db
}

func open(t testing.TB, db clustertest.Database) *postgres.Store {
	t.Helper()
	store := check.Must(postgres.Open(t.Context(), postgres.Config{URL: db.URL}))(t)
	t.Cleanup(func() {
		check.NoError(t, store.Close())
	})
	return store
}

// awaitLockWait waits until a session of the database waits for a lock.
func awaitLockWait(t testing.TB, db *sql.DB) {
	t.Helper()
	const query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	check.Eventually(t, "nobody waits for a lock", func() bool {
		var waiting int
		check.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&waiting))
		return waiting > 0
	})
}
