package pooler

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/usage"
)

// Report returns the console's figures in the form of the health report. PgBouncer serves nobody while it writes a list, and the
// list of clients is as long as customers like: so nothing is listed more often than its pause allows, whoever asks.
type Report struct {
	pools               *loop.Shared[[]Pool]
	clients             *loop.Shared[[]protocol.PgBouncerClient]
	counters            *loop.Shared[map[string]usage.Counters]
	maintenanceDatabase string
}

const (
	poolsEvery    = 5 * time.Second
	countersEvery = 10 * time.Second
	clientsEvery  = 15 * time.Second
	listTime      = 2 * time.Second
)

// NewReport makes a report of a console.
func NewReport(c *Console) *Report {
	return &Report{
		pools: loop.NewShared(poolsEvery, listTime, c.Pools), maintenanceDatabase: c.settings.MaintenanceDatabase,
		clients:  loop.NewShared(clientsEvery, listTime, c.reportedClients),
		counters: loop.NewShared(countersEvery, listTime, c.Counters),
	}
}

// Pools returns all pools but those of the console.
func (r *Report) Pools(ctx context.Context) ([]protocol.PgBouncerPool, error) {
	pools, err := r.pools.Get(ctx)
	out := make([]protocol.PgBouncerPool, 0, len(pools))
	for _, p := range pools {
		out = append(out, p.PgBouncerPool)
	}
	return out, err
}

// Waits is how many clients wait for a server connection, and for how long the first of them has. The maintenance database's
// entry is left out: nobody but the agent is a client there, and no cap of a customer's database is in use.
func (r *Report) Waits(ctx context.Context) (clients int64, longest time.Duration, err error) {
	pools, err := r.pools.Get(ctx)
	for _, p := range pools {
		if p.Database != r.maintenanceDatabase {
			clients += p.ClientWaiting
			longest = max(longest, p.Waited)
		}
	}
	return clients, longest, err
}

// EntryUse is how one entry is used.
type EntryUse struct {
	Active, Waiting int // server connections that clients have, and clients that wait for one
	usage.Counters
}

// Entries returns how each entry is used. One that nobody has used may be missing.
func (r *Report) Entries(ctx context.Context) (map[string]EntryUse, error) {
	pools, err := r.pools.Get(ctx)
	if err != nil {
		return nil, err
	}
	counted, err := r.counters.Get(ctx)
	if err != nil {
		return nil, err
	}
	entries := make(map[string]EntryUse, len(counted))
	for name, c := range counted {
		entries[name] = EntryUse{Counters: c}
	}
	for _, p := range pools {
		e := entries[p.Database]
		e.Active, e.Waiting = e.Active+int(p.ServerActive), e.Waiting+int(p.ClientWaiting)
		entries[p.Database] = e
	}
	return entries, nil
}

// Clients returns all clients but those of the console. Who asks must not change them: others have the same list.
func (r *Report) Clients(ctx context.Context) ([]protocol.PgBouncerClient, error) {
	return r.clients.Get(ctx)
}

func (c *Console) reportedClients(ctx context.Context) ([]protocol.PgBouncerClient, error) {
	clients, err := c.Clients(ctx)
	out := make([]protocol.PgBouncerClient, 0, len(clients))
	for _, c := range clients {
		from := "unix"
		if c.Address.IsValid() {
			from = c.Address.String()
		}
		out = append(out, protocol.PgBouncerClient{
			Database: c.Entry, User: c.Login, ClientAddr: from, ApplicationName: c.ApplicationName,
			ConnectedAt: c.ConnectedAt.UTC(), State: c.State,
		})
	}
	return out, err
}
