package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
)

// Forwards keeps which servers send on who still comes for databases that they have left. They go with their databases, and a
// server that has one is not removed.
type Forwards interface {
	// Put stores a forward, in the place of one of the same database and server.
	Put(ctx context.Context, f move.Forward) error
	// Of lists those of a database, by the IDs of their servers.
	Of(ctx context.Context, db id.DatabaseID) ([]move.Forward, error)
	// Named lists those by which a server sends on for databases of a name.
	Named(ctx context.Context, on id.ServerID, name string) ([]move.Forward, error)
	// List lists all, the oldest first.
	List(ctx context.Context) ([]move.Forward, error)
	// Due lists the forwards that are to be looked at, those first that have waited longest.
	Due(ctx context.Context, now time.Time) ([]move.Forward, error)
	// Remove forgets one; ErrNoRow where there is none.
	Remove(ctx context.Context, db id.DatabaseID, server id.ServerID) error
}
