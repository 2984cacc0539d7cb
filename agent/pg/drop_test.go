package pg_test

import (
	"context"
	"database/sql/driver"
	"sync"
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

// Who is not a superuser cannot end an administrator's session. One that ends by itself is no reason to give up, and everybody
// else is ended meanwhile.
func TestDropDatabaseWhileAnAdministratorPassesBy(t *testing.T) {
	other := clustertest.NewDatabase(t)
	clustertest.Exec(t, other.Cluster.URL("postgres"), `CREATE ROLE keeper LOGIN CREATEDB PASSWORD 'test-only'`,
		`GRANT pg_signal_backend TO keeper`, `CREATE ROLE guest LOGIN PASSWORD 'test-only'`)
	t.Cleanup(func() { clustertest.Exec(t, other.Cluster.URL("postgres"), `DROP ROLE keeper`, `DROP ROLE guest`) })
	keeper := clustertest.Database{URL: other.Cluster.URLFor("keeper", "test-only", other.Name)}.Open(t)
	check.Must(keeper.Exec(`CREATE DATABASE visited`))(t)
	passing := check.Must(clustertest.Database{URL: other.Cluster.URL("visited")}.Open(t).Conn(t.Context()))(t)
	check.NoError(t, passing.PingContext(t.Context()))
	visited := clustertest.Database{URL: other.Cluster.URLFor("guest", "test-only", "visited")}.Open(t)
	guest := check.Must(visited.Conn(t.Context()))(t)
	check.NoError(t, guest.PingContext(t.Context()))

	var leaving sync.WaitGroup
	leaving.Go(func() {
		for guest.PingContext(t.Context()) == nil {
			time.Sleep(time.Millisecond)
		}
		_ = passing.Raw(func(any) error { return driver.ErrBadConn })
	})
	check.NoError(t, pg.DropDatabase(t.Context(), keeper, "visited"))
	leaving.Wait()
	const query = `SELECT count(*) FROM pg_database WHERE datname = 'visited'`
	if left := check.Must(pg.One[int](t.Context(), keeper, query))(t); left != 0 {
		t.Error("it is still there")
	}
}
