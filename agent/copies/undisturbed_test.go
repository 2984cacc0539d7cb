package copies

import (
	"database/sql"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// What is set for a customer's database does not reach the sessions that work on backups there.
func TestBackupsAreUndisturbedByADatabasesSettings(t *testing.T) {
	d := clustertest.NewDatabase(t)
	clustertest.Exec(t, d.URL, `ALTER DATABASE "`+d.Name+`" SET default_transaction_read_only = on`,
		`ALTER DATABASE "`+d.Name+`" SET statement_timeout = '50ms'`)
	server := sessions.Server{
		Host: d.Cluster.Host(), Port: d.Cluster.Port(), User: cluster.Superuser, Password: d.Cluster.Password(),
	}
	check.NoError(t, server.With(d.Name, "", func(db *sql.DB) error {
		_, err := db.ExecContext(t.Context(), "CREATE TABLE public.made (); SELECT pg_sleep(0.2)")
		return err
	}))
}
