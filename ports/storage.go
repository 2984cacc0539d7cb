package ports

import (
	"context"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
)

// Storage reads which databases servers have, and what these and their backups take. All but Between pass deleted databases by.
type Storage interface {
	// Servers lists the servers that have databases, by name.
	Servers(ctx context.Context) ([]server.Server, error)
	// OnServer returns those of a list of databases that are on a server, by ID.
	OnServer(ctx context.Context, server id.ServerID, list []id.DatabaseID) ([]database.Record, error)
	// Ahead returns, of the databases of a server that it says to have these generations of, those of which it is recorded to have a
	// higher one, by ID. what is DueAllowlist or DueSettings.
	Ahead(ctx context.Context, server id.ServerID, what DueWork, has map[id.DatabaseID]int64) ([]database.Record, error)
	// Between returns the databases of a server whose IDs are above after and not above last, by ID; an empty bound is none.
	Between(ctx context.Context, server id.ServerID, after, last id.DatabaseID) ([]database.Record, error)
	// OfAccount lists the databases of an account, by ID.
	OfAccount(ctx context.Context, account id.AccountID) ([]id.DatabaseID, error)
	// BackupBytes adds up the backup files of a database that count against the quota: those that are neither being deleted nor
	// damaged nor bound to a deletion.
	BackupBytes(ctx context.Context, db id.DatabaseID) (int64, error)
}
