package ports

import (
	"context"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
)

// Drains keeps what servers are drained, and what became of their databases. They go with their servers.
type Drains interface {
	// Put stores the drain of a server, in the place of the one before.
	Put(ctx context.Context, d move.Drain) error
	// Lock returns the drain of a server, and locks it until the transaction ends; ErrNoRow where there is none.
	Lock(ctx context.Context, server id.ServerID) (move.Drain, error)
	// List lists the last drain of each server that was ever drained, by their time; open: those that have not ended.
	List(ctx context.Context, open bool) ([]move.Drain, error)
	// PutItem stores what became of a database, in the place of what is stored.
	PutItem(ctx context.Context, i move.DrainItem) error
	// Items lists what became of the databases of a server, by their IDs, with what their last moves failed with.
	Items(ctx context.Context, server id.ServerID) ([]move.DrainItem, error)
	// Moving lists the databases of a server of which a move is open, by their IDs.
	Moving(ctx context.Context, server id.ServerID) ([]id.DatabaseID, error)
	// Forget removes the items of a server: a drain begins anew.
	Forget(ctx context.Context, server id.ServerID) error
}
