package ports

import (
	"context"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rehearsal"
)

// Rehearsals keeps the last rehearsal of each database for each major version of PostgreSQL. They go with their databases, and
// with the servers that they were at.
type Rehearsals interface {
	// Put stores a rehearsal, in the place of one of the same database and version; ErrNoRow where database or server are gone.
	Put(ctx context.Context, r rehearsal.Rehearsal) error
	// Last returns that of a database for a version; ErrNoRow where there is none.
	Last(ctx context.Context, db id.DatabaseID, version int) (rehearsal.Rehearsal, error)
	// Of lists those of a database, by version.
	Of(ctx context.Context, db id.DatabaseID) ([]rehearsal.Rehearsal, error)
}
