package ports

import (
	"context"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// Uses keeps what operations use beside their own databases. Whoever adds one, or asks before a thing is deleted or changed,
// holds the lock of the thing's database (Databases.Lock).
type Uses interface {
	// Add stores a use of an operation that is stored in the same transaction.
	Add(ctx context.Context, u operation.Use) error
	// Of returns how a database and its backups are used by open operations, those of other databases too.
	Of(ctx context.Context, db id.DatabaseID) ([]operation.Use, error)
}
