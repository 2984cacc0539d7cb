package guard_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/database"
)

// A customer of whose sessions one waits for the other keeps nobody out: no other customer, nor those who ask in the maintenance
// database who may log in.
func TestStrangersKeepNobodyOut(t *testing.T) {
	s := agenttest.Shared(t)
	stranger, w := s.Owner(t, s.Made(t, database.SingleLogin)), s.Made(t, database.SingleLogin)
	stranger.SetMaxOpenConns(0)
	const stores = "ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '5MB'"
	asOwner := func() error { return s.Direct(t, w.Name, w.Name, w.Passwords[database.OwnerLogin]).Ping() }
	for _, c := range []struct {
		holds, waits string
		enter        func() error
	}{
		{fmt.Sprintf(stores, w.Name), fmt.Sprintf("ALTER DATABASE %q RENAME TO mine", w.Name), asOwner},
		{fmt.Sprintf(stores, setup.MaintenanceDatabase), fmt.Sprintf("DROP DATABASE %q", setup.MaintenanceDatabase),
			func() error { return agenttest.Open(t, s.PG.URL(setup.MaintenanceDatabase)).Ping() }},
		{"SELECT FROM pg_roles", "CREATE RULE mine AS ON INSERT TO pg_catalog.pg_authid DO NOTHING", asOwner},
		{"SELECT FROM pg_database", "CREATE RULE mine AS ON INSERT TO pg_catalog.pg_database DO NOTHING", asOwner},
	} {
		held := check.Must(stranger.Begin())(t)
		check.Must(held.Exec(c.holds))(t)
		ended := make(chan error, 1)
		go func() {
			_, err := stranger.Exec(c.waits)
			ended <- err
		}()
		check.Eventually(t, "it does not wait", func() bool {
			const query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event IN ('object', 'relation')"
			return s.One(t, query) != "0" || len(ended) > 0
		})
		began := time.Now()
		check.NoError(t, c.enter())
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s kept others out for %s", c.waits, took)
		}
		if err := <-ended; err == nil {
			t.Errorf("%s was done", c.waits)
		}
		check.NoError(t, held.Commit()) // it was in nobody's way by itself
	}
}

// Whoever waits for their own tables is left alone.
func TestCustomersWaitForEachOther(t *testing.T) {
	s := agenttest.Shared(t)
	owner := s.Owner(t, s.Made(t, database.SingleLogin))
	owner.SetMaxOpenConns(0)
	check.Must(owner.Exec("CREATE TABLE things ()"))(t)
	held := check.Must(owner.Begin())(t)
	check.Must(held.Exec("LOCK TABLE things"))(t)
	ended := make(chan error, 1)
	go func() {
		_, err := owner.Exec("ALTER TABLE things ADD name text")
		ended <- err
	}()
	time.Sleep(1500 * time.Millisecond) // three looks
	check.NoError(t, held.Commit())
	check.NoError(t, <-ended)
}
