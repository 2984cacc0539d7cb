package abuse_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// abuse is something that a customer does. It begins, and goes on until the test of it ends.
type abuse struct {
	name string
	// begin returns what is asked after the bystander's round, or nil: an abuse that has ended by itself shows nothing.
	begin func(t *testing.T, m *mallory) (stillOn func(*testing.T))
	// fair are the measures of the bystander that it does not slow down; the others may be somewhat slower.
	fair []string
	// shared is what all customers share and it takes much of. Such an abuse is tried for a while, and its end is looked at; see
	// last. The others go on for as long as one round of the bystander takes.
	shared []shared
	// computes does as much in as many sessions without anything that is shared but the processor, which the system divides between
	// processes and not between customers. Figures of such an abuse are compared with those beside that.
	computes func(t *testing.T, m *mallory)
	// archived is that the server keeps an archive.
	archived bool
}

var abuses = []abuse{
	{name: "stalled downloads", begin: stallDownloads},
	{name: "hanging verifications", begin: hangVerifications, fair: []string{creations, backups, stops, rotations}},
	{name: "verifications without room", begin: needMuchRoom},
	{name: "restores", begin: restoreMuch},
	{name: "leases that end", begin: endLeases},
	{name: "idle clients", begin: fillPooler},
	{name: "statements at the pooler", begin: hoardStatements, shared: []shared{poolerMiB}},
	{name: "blocked rotations", begin: blockRotations},
	{name: "grants before a start", begin: grantBeforeStart},
	{name: "wrong keys", begin: tryKeys},
	{name: "connections to the API", begin: fillAPI},
	{name: "idle connections from many addresses", begin: crowdAPI, shared: []shared{openFiles}},
	{name: "long lists", begin: readLongLists},
	{name: "temporary files", begin: sortMuch},
	{name: "settings elsewhere", begin: storeElsewhere},
	{name: "a stopped server", begin: stopServer},
	{name: "autovacuum without end", begin: holdWorkers, shared: []shared{heldWorkers}},
	{name: "the server's log", begin: logMuch, shared: []shared{serverLog}},
	{name: "exported snapshots", begin: exportSnapshots, shared: []shared{exportedSnapshots}},
	{name: "locks of one session", begin: fillLocks, shared: lockTable},
	{name: "locks of twenty sessions", begin: fillLocksTogether, shared: lockTable, computes: countTogether},
	{name: "locks of one transaction", begin: unlinkMuch, shared: lockTable},
	{name: "transaction IDs", begin: burnIDs, shared: []shared{keptIDs}},
	{name: "notifications", begin: fillQueue, shared: []shared{queueInUse}, computes: sendMuch},
	{name: "clients that stand still", begin: standStill, shared: []shared{waitForAll}},
	{name: "shared catalogs", begin: growCatalogs, shared: []shared{catalogBytes}},
	{name: "WAL without end", begin: writeMuch, shared: []shared{unstored}, computes: writeUnlogged, archived: true},
}

// mallory is the customer who does it, with an account of its own for each abuse.
type mallory struct{ *customer }

func newMallory(t *testing.T, w *world, a abuse) *mallory {
	t.Helper()
	return &mallory{w.newCustomer(t, strings.ReplaceAll(a.name, " ", "-"), "127.0.0.9")}
}

// database makes one, with what the statements put into it.
func (m *mallory) database(t *testing.T, name string, statements ...string) wire.CreatedDatabase {
	t.Helper()
	d := must(m.create(soon(t), name))(t)
	db := m.at(t, d.Name, d.Username, d.Password)
	for _, s := range statements {
		must(db.ExecContext(soon(t), s))(t)
	}
	noError(t, db.Close())
	return d
}

// databases makes several at the same time.
func (m *mallory) databases(t *testing.T, prefix string, count int, statements ...string) []wire.CreatedDatabase {
	t.Helper()
	all := make([]wire.CreatedDatabase, count)
	var making sync.WaitGroup
	for n := range all {
		making.Go(func() { all[n] = m.database(t, fmt.Sprintf("%s-%d", prefix, n+1), statements...) })
	}
	making.Wait()
	return all
}

// again does something over and over, in a goroutine of its own, until the test ends.
func again(t *testing.T, do func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			do(ctx)
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
}
