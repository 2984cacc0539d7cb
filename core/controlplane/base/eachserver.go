package base

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// EachServer registers periodic work that is done for each server, and destroys nothing.
func (p *Base) EachServer(name string, every time.Duration, do func(context.Context, time.Time, server.Server) error) {
	rounds.RegisterServers(p.Rounds, rounds.ServerTask[server.Server]{
		Name: name, Every: every, Work: brake.Harmless, Do: do,
		Of: func(s server.Server) (id.ServerID, id.AccountID) { return s.ID, "" },
		Find: func(ctx context.Context, _ time.Time) ([]server.Server, error) {
			return ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) ([]server.Server, error) {
				return tx.Storage().Servers(ctx)
			})
		},
	})
}
