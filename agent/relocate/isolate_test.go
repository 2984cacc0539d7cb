package relocate

import (
	"errors"
	"testing"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/ledgertest"
	"github.com/pgherd/pgherd/agent/databases"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/sizes"
	"github.com/pgherd/pgherd/core/command"
)

// Whatever goes over all databases sees one that is in service, and leaves it out while it is not.
func TestWhatGoesOverAllDatabasesLeavesIsolatedOnesOut(t *testing.T) {
	on, db, password := ledgertest.NewOn(t)
	server := ledger.Server{Host: on.Host(), Port: on.Port(), Password: password, Instance: "test"}
	leader := check.Must(server.Lead(t.Context()))(t)
	t.Cleanup(leader.Release)
	l := check.Must(ledger.New(server, pooler.Settings{}, zap.NewNop()))(t)
	t.Cleanup(l.Stop)
	x := databases.New(l, nil)
	name, _ := ledgertest.Enter(t, db, 0)
	ledgertest.Exec(t, db, "INSERT INTO pooler.gate (login, database, open) VALUES ($1, $1, false)", name)
	count := func() map[string]int {
		holdings, err := x.Holdings(t.Context())
		sightings, failed := sizes.Source{Ledger: l}.Look(t.Context())
		check.NoError(t, errors.Join(err, failed))
		return map[string]int{
			"holdings": len(holdings), "sightings": len(sightings),
			"pooled":  len(check.Must(l.PoolerState(t.Context()))(t).Entries),
			"applied": len(check.Must(l.Applied(t.Context(), command.AskApplied{After: command.AppliedFromStart}))(t).Databases),
		}
	}
	want := func(when string, n int) {
		t.Helper()
		for what, got := range count() {
			if got != n {
				t.Errorf("%s, %s: %d, want %d", when, what, got, n)
			}
		}
	}
	want("in service", 1)
	ledgertest.Exec(t, db, `UPDATE ledger.database SET isolated = 'deleted_d', settings_since = now(), reconnected = false`)
	want("isolated", 0)
	if _, err := l.InService(t.Context(), ledgertest.ID); !command.RefusedFor(err, command.ReasonIsolated) {
		t.Errorf("for a command it is there: %v", err)
	}
}

// The ledger takes a database out of service only under the name that PostgreSQL has it by, and once; nothing is left to be told
// to PgBouncer then.
func TestLedgerIsolatesTheDatabaseItself(t *testing.T) {
	db := ledgertest.New(t)
	name, _ := ledgertest.Enter(t, db, 0)
	ledgertest.Exec(t, db, `UPDATE ledger.database SET settings_since = now(), reconnected = false, renewing = true`)
	refused := func(call string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), "SELECT "+call); pg.State(err) != otherwiseNow {
			t.Errorf("%s: %v", call, err)
		}
	}
	refused("ledger.isolate('d', 'deleted_d')") // it has another name
	refused("ledger.isolate('another', current_database())")
	refused("ledger.rejoin('d', 'operation')")
	ledgertest.Exec(t, db, "SELECT ledger.isolate('d', current_database())")
	refused("ledger.isolate('d', current_database())")
	const told = `SELECT settings_since IS NULL AND reconnected AND NOT renewing FROM ledger.database WHERE id = 'd'`
	if !check.Must(pg.One[bool](t.Context(), db, told))(t) {
		t.Error("PgBouncer is to be told of its settings")
	}
	ledgertest.Exec(t, db, "UPDATE ledger.database SET name = 'elsewhere'")
	refused("ledger.rejoin('d', 'operation')")
	ledgertest.Exec(t, db, "UPDATE ledger.database SET name = $1", name)
	ledgertest.Exec(t, db, "SELECT ledger.rejoin('d', 'operation')")
	if has := check.Must((&Relocator{db: db}).hasRejoined(t.Context(), "operation"))(t); !has {
		t.Error("the operation has not rejoined it")
	}
}
