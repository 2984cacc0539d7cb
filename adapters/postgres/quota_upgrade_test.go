package postgres_test

import (
	"os"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// TestAnUpgradeClosesNoDatabase upgrades a store in which a database is far above what will be its quota.
func TestAnUpgradeClosesNoDatabase(t *testing.T) {
	db := clustertest.NewDatabase(t)
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, db.Open(t), os.DirFS("migrations")))(t)
	check.Must(provider.UpTo(t.Context(), 11))(t)
	populate(t, db, 1)
	const size, quota = 1 << 42, 1 << 40
	clustertest.Exec(t, db.URL, "UPDATE databases SET size_bytes = 1::bigint << 42")
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	var ceiling int64
	check.NoError(t, db.Open(t).QueryRow("SELECT storage_ceiling FROM databases").Scan(&ceiling))
	was := database.Storage{Status: database.StorageOK, Ceiling: ceiling}
	for _, c := range []struct {
		size int64
		want database.StorageStatus
	}{{size, database.StorageFull}, {2 * size, database.StorageFull}, {2*size + 1, database.StorageClosed}} {
		if is := was.Measured(c.size, quota); is.Status != c.want {
			t.Errorf("with %d bytes and a ceiling of %d it is %s", c.size, ceiling, is.Status)
		}
	}
}
