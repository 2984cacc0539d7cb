package base

import (
	"cmp"
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/snapshot"
)

// Holders are the servers that are to keep snapshots of the metadata.
func (p *Base) Holders(ctx context.Context) ([]server.Server, error) {
	servers, err := p.servers(ctx)
	return holders(servers), err
}

// holders are the first of all servers: those that take databases come before others, of these those that answer, and of these
// those that were added earlier.
func holders(servers []server.Server) []server.Server {
	sorted := slices.Clone(servers)
	rank := func(s server.Server) int {
		switch {
		case !s.Enabled:
			return 2
		case s.AwaySince != nil:
			return 1
		}
		return 0
	}
	slices.SortFunc(sorted, func(a, b server.Server) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return sorted[:min(len(sorted), snapshot.Holders)]
}
