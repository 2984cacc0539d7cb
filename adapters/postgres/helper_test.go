package postgres_test

import (
	"database/sql"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// template is an empty database with the schema, from which each test's is copied.
var template struct {
	sync.Once
	stands bool
}

// migrated is an empty database with the schema.
func migrated(t testing.TB) clustertest.Database {
	t.Helper()
	const name = "migrated"
	template.Do(func() {
		pg := clustertest.Postgres(t)
		clustertest.Exec(t, pg.URL("postgres"), "CREATE DATABASE "+name)
		check.NoError(t, postgres.Migrate(t.Context(), pg.URL(name)))
		template.stands = true
	})
	if !template.stands {
		t.Fatal("there is no schema; see the first test")
	}
	return clustertest.Copy(t, name)
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
