package artifact

import (
	"database/sql"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// What is set for a customer's database does not reach the sessions that work on backups there.
func TestBackupsAreUndisturbedByADatabasesSettings(t *testing.T) {
	d := clustertest.NewDatabase(t)
	clustertest.Exec(t, d.URL, `ALTER DATABASE "`+d.Name+`" SET default_transaction_read_only = on`,
		`ALTER DATABASE "`+d.Name+`" SET statement_timeout = '50ms'`)
	cfg := Config{Host: d.Cluster.Host(), Port: d.Cluster.Port(), User: cluster.Superuser, Password: d.Cluster.Password()}
	cfg.complete()
	check.NoError(t, cfg.with(d.Name, "", func(db *sql.DB) error {
		_, err := db.ExecContext(t.Context(), "CREATE TABLE public.made (); SELECT pg_sleep(0.2)")
		return err
	}))
}
