package pooler

import (
	"context"

	"github.com/pgherd/pgherd/agent/protocol"
)

// Report returns the console's figures in the form of the health report.
type Report struct{ Console *Console }

// Pools returns all pools but those of the console.
func (r Report) Pools(ctx context.Context) ([]protocol.PgBouncerPool, error) {
	pools, err := r.Console.Pools(ctx)
	out := make([]protocol.PgBouncerPool, 0, len(pools))
	for _, p := range pools {
		out = append(out, protocol.PgBouncerPool{
			Database: p.Entry, User: p.Login, ClientActive: p.ClientActive, ClientWaiting: p.ClientWaiting,
			ServerActive: p.ServerActive, ServerIdle: p.ServerIdle,
		})
	}
	return out, err
}

// Clients returns all clients but those of the console.
func (r Report) Clients(ctx context.Context) ([]protocol.PgBouncerClient, error) {
	clients, err := r.Console.Clients(ctx)
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
