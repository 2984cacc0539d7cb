package pooler

import (
	"context"

	"github.com/pgherd/pgherd/agent/protocol"
)

// Report returns the console's figures in the form of the health report.
type Report struct{ *Console }

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
