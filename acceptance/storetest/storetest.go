// Package storetest gives tests a store as the service has it.
package storetest

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// New is a store of its own on a real server, whose locks, constraints and repeated transactions are what stores in memory stand
// for. A busy machine does not look like an outage to it: it waits for a minute.
func New(t *testing.T) *postgres.Store {
	t.Helper()
	db := clustertest.NewDatabase(t)
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	config := postgres.Config{URL: db.URL, ConnectTimeout: time.Minute, StatementTimeout: time.Minute}
	store := check.Must(postgres.Open(t.Context(), config))(t)
	t.Cleanup(func() { check.NoError(t, store.Close()) })
	return store
}
