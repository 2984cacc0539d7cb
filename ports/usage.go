package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/usage"
)

// Usage keeps what databases used. It outlives them.
type Usage interface {
	// Servers lists the servers that have databases, also deleted ones, by name, with what of their agents' is stored.
	Servers(ctx context.Context) ([]UsageServer, error)
	// LockTaken returns up to where what the agent of a server saw is stored, and locks that until the transaction ends; the zero
	// value where nothing is. An unknown server is ErrNoRow.
	LockTaken(ctx context.Context, server id.ServerID) (usage.Taken, error)
	// SetTaken stores it. Whoever does holds the lock.
	SetTaken(ctx context.Context, t usage.Taken) error
	// Holdings returns what is known of those of a list of databases that are on a server, also deleted ones, by ID.
	Holdings(ctx context.Context, server id.ServerID, list []id.DatabaseID) ([]usage.Holding, error)
	// Add adds each sample to that of its hour, as its Plus does, and each line to that of its month.
	Add(ctx context.Context, samples []usage.Sample, lines []usage.Line) error
	// Samples returns those of a list of databases in a period, by hour, then ID.
	Samples(ctx context.Context, list []id.DatabaseID, in usage.Period) ([]usage.Sample, error)
	// Lines lists those of an account in a month, by the IDs of their databases.
	Lines(ctx context.Context, of UsageFilter, p Page) ([]usage.Line, error)
	// Sum adds these up.
	Sum(ctx context.Context, of UsageFilter) (usage.Sums, error)
}

// UsageServer is a server with what of its agent's is stored.
type UsageServer struct {
	server.Server
	Taken usage.Taken `db:"taken"`
}

// UsageFilter chooses the lines of a month. With a key, only those of the databases that it is bound to.
type UsageFilter struct {
	Month     time.Time
	AccountID id.AccountID
	KeyID     id.KeyID // Directory.Usage takes none
}
