package postgres_test

import (
	"testing"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// migrated is an empty database with the schema.
func migrated(t testing.TB) clustertest.Database {
	t.Helper()
	db := clustertest.NewDatabase(t)
	if err := postgres.Migrate(t.Context(), db.URL); err != nil {
		t.Fatal(err)
	}
	return db
}

func open(t testing.TB, db clustertest.Database) *postgres.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}
