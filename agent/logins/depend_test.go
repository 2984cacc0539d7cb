package logins

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/ledgertest"
	"github.com/pgherd/pgherd/core/id"
)

// Nobody can look into a database that is out of service.
func TestWhatDependsOnARoleIsNotLookedForInIsolatedDatabases(t *testing.T) {
	db := ledgertest.New(t)
	x := &Logins{db: db}
	ledgertest.Enter(t, db, 0)
	looked := func() int {
		return len(check.Must(x.accountDatabases(t.Context(), loginRow{}, []id.DatabaseID{ledgertest.ID}))(t))
	}
	if n := looked(); n != 1 {
		t.Errorf("in service, %d are looked into", n)
	}
	ledgertest.Exec(t, db, "UPDATE ledger.database SET isolated = 'deleted_d'")
	if n := looked(); n != 0 {
		t.Errorf("isolated, %d are looked into", n)
	}
}
