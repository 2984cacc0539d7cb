package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// Whoever holds a database from elsewhere is ended for its drop, but for an administrator.
func TestDropDatabase(t *testing.T) {
	other := clustertest.NewDatabase(t)
	admin := other.Open(t)
	check.Must(admin.Exec(`CREATE DATABASE doomed`))(t)
	check.Must(admin.Exec(`CREATE ROLE stranger LOGIN PASSWORD 'test-only'`))(t)
	t.Cleanup(func() { clustertest.Exec(t, other.Cluster.URL("postgres"), `DROP ROLE stranger`) })
	stranger := clustertest.Database{URL: other.Cluster.URLFor("stranger", "test-only", other.Name)}.Open(t)
	const hold = `ALTER ROLE CURRENT_USER IN DATABASE doomed SET work_mem = '5MB'`

	held := check.Must(admin.Begin())(t)
	check.Must(held.Exec(hold))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := pg.DropDatabase(ctx, admin, "doomed"); err == nil || ctx.Err() == nil {
		t.Errorf("while an administrator holds it: %v", err)
	}
	check.NoError(t, held.Commit())

	held = check.Must(stranger.Begin())(t)
	check.Must(held.Exec(hold))(t)
	check.NoError(t, pg.DropDatabase(t.Context(), admin, "doomed"))
	if err := held.Commit(); err == nil {
		t.Error("the transaction that held it was committed")
	}
	check.NoError(t, pg.DropDatabase(t.Context(), admin, "doomed")) // which is gone
	if timeout := check.Must(pg.One[string](t.Context(), admin, `SHOW lock_timeout`))(t); timeout != "0" {
		t.Errorf("the pool has a lock_timeout of %s", timeout)
	}
}
