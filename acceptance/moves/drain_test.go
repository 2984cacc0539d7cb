package moves_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// One command has all databases of a server moved, waits for that, and removes the server, on which nothing is left.
func TestAServerIsDrained(t *testing.T) {
	t.Parallel()
	databases, measured := asked(t, "PGHERD_DRAIN", 3)
	w := newWorld(t, databases, measured)
	var made []wire.CreatedDatabase
	for n := range databases {
		name := fmt.Sprintf("drained-%d", n)
		d := must(w.api.Databases.Create(soon(t), wire.CreateDatabase{Name: name, DisplayName: name}))(t)
		db := stacktest.Open(t, w.PoolerURL(d.Name, d.Username, d.Password))
		must(db.ExecContext(soon(t), "CREATE TABLE line (n int PRIMARY KEY)"))(t)
		must(db.ExecContext(soon(t), "INSERT INTO line VALUES ($1)", n))(t)
		noError(t, db.Close())
		made = append(made, d)
	}
	other := w.another(t)

	done := w.orders(t, "server", "drain", "--server", w.ServerID(), "--remove")
	if done["removed"] != true {
		t.Errorf("the drain says %v", done)
	}
	for n, d := range made {
		var line int
		db := stacktest.Open(t, other.PoolerURL(d.Name, d.Username, d.Password))
		noError(t, db.QueryRowContext(soon(t), "SELECT n FROM line").Scan(&line))
		if line != n {
			t.Errorf("%s has the row %d", d.Name, line)
		}
	}
	const left = `SELECT datname FROM pg_database WHERE NOT datistemplate AND datname NOT IN ('postgres', 'pgherd_maintenance')
		UNION ALL SELECT slot_name FROM pg_replication_slots
		UNION ALL SELECT rolname FROM pg_roles WHERE rolname !~ '^(pg|pgherd)_' AND rolname <> 'postgres'`
	if found := must(stack.Column(soon(t), stacktest.Open(t, w.Server.URL("postgres")), left))(t); len(found) > 0 {
		t.Errorf("the server that was drained has %v", found)
	}
	servers := must(w.AdminList(soon(t), "server", "list"))(t)
	if len(servers) != 1 || servers[0]["serverId"] != other.ServerID() {
		t.Errorf("the servers are %v", servers)
	}
	stacktest.WantHealthy(t, other)
}
