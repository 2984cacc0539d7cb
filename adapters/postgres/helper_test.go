package postgres_test

import (
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
