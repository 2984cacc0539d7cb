package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// TestAReadCostsOneStatement counts what the server commits: outside a transaction each statement is one commit. Every other read
// leases anew, and takes two.
func TestAReadCostsOneStatement(t *testing.T) {
	pg := clustertest.New(t, map[string]string{"autovacuum": "off"}) // whose commits would be counted
	clustertest.Exec(t, pg.URL("postgres"), "CREATE DATABASE metadata")
	db := clustertest.Database{Name: "metadata", URL: pg.URL("metadata"), Cluster: pg}
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	credential, viewer := populate(t, db, 3)
	commits := func(reads int) int {
		before := committedOn(t, db)
		store := check.Must(postgres.Open(t.Context(), postgres.Config{URL: db.URL}))(t)
		for n := range reads {
			readOne(t, store, credential, viewer, n%2 == 0)
		}
		check.NoError(t, store.Close())
		return committedOn(t, db) - before
	}
	const reads = 50
	opening := commits(0)
	if got := commits(reads) - opening; got != reads+reads/2 {
		t.Errorf("%d reads cost %d statements, want %d", reads, got, reads+reads/2)
	}
}

// readOne does what a read of one database asks of the store, with a lease of the key's bucket or without one.
func readOne(t testing.TB, store *postgres.Store, credential account.Credential, viewer database.Viewer, lease bool) {
	t.Helper()
	const db = "10000000-0000-4000-8000-000000000002"
	if !lease {
		a, err := store.FindForRead(t.Context(), credential.ID, db)
		if err != nil || a.Database.ID != db {
			t.Errorf("%+v, %v", a.Database, err)
		}
		return
	}
	_, _, err := store.Lease(t.Context(), ports.LeaseRequest{
		Credential: credential, Class: ratelimit.Read, Limit: ratelimit.Defaults()[ratelimit.Read],
		Ask: ratelimit.Ask{Requests: 100}, Now: time.Now(),
	})
	check.NoError(t, err)
	check.NoError(t, store.View(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		_, _, err := access.See(ctx, tx, viewer, db)
		return err
	}))
}

// committedOn is how many transactions the database has committed, once the sessions that ended have reported.
func committedOn(t *testing.T, db clustertest.Database) (n int) {
	t.Helper()
	pool := clustertest.Database{URL: db.Cluster.URL("postgres")}.Open(t)
	for sessions := 1; sessions > 0; time.Sleep(20 * time.Millisecond) {
		err := pool.QueryRow(`SELECT xact_commit, (SELECT count(*) FROM pg_stat_activity a WHERE a.datname = d.datname)
			FROM pg_stat_database d WHERE d.datname = $1`, db.Name).Scan(&n, &sessions)
		check.NoError(t, err)
	}
	err := pool.QueryRow("SELECT xact_commit FROM pg_stat_database WHERE datname = $1", db.Name).Scan(&n)
	check.NoError(t, err)
	return n
}
