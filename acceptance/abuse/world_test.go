package abuse_test

import (
	"context"
	"database/sql"
	"strconv"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
)

// maxClients is small, so that a test can hold more connections than the pooler takes.
const maxClients = "400"

// poolerMemory is 128 MiB: PgBouncer has 30 at rest.
const poolerMemory = "134217728"

// agentFlags, initFlags and apiFlags make the limits small enough to be reached in a test. What they bound is the same. Restores
// can be reserved, and databases made, as often as with many keys.
var (
	agentFlags = []string{
		"--pooler-max-clients", maxClients, "--pooler-memory", poolerMemory, "--transaction-ids", "500000",
	}
	initFlags = []string{"--temp-file-limit", "64MB"}
	apiFlags  = []string{
		"--rate-limits", "unauthorized=30/1m,reservation=1000/1h,create=600/1m", "--max-connections", strconv.Itoa(maxConnections),
	}
)

// world is a running stack with one host of each kind.
type world struct {
	*stack.Stack
	api, batch *stack.Host
	agent      *stack.Process
	// asSuperuser stays open, so that it can ask while nobody can log in any more.
	asSuperuser *sql.DB
}

// superuser is a connection to PostgreSQL itself, and metadata one to the metadata.
func (w *world) superuser(t testing.TB) *sql.DB { return stacktest.Open(t, w.Server.URL("postgres")) }
func (w *world) metadata(t testing.TB) *sql.DB  { return stacktest.Open(t, w.MetadataURL()) }

// soon is a context for one request or wait.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// at is at most one client connection through the pooler.
func (w *world) at(t testing.TB, entry, username, password string) *sql.DB {
	t.Helper()
	db := must(sql.Open("postgres", w.PoolerURL(entry, username, password)))(t)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() }) // the service may have ended the connection
	return db
}
