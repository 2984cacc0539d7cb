package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
)

// Deletions keeps what is left of deleted databases beside their records. Writers must hold the database's lock.
type Deletions interface {
	// Add stores a tombstone, in the place of a former one of the database, with the access snapshot: the members, the keys that are
	// bound to the database and not revoked, and how many of both and of the allowlist there are. It returns the tombstone with
	// these numbers.
	Add(ctx context.Context, t deletion.Tombstone) (deletion.Tombstone, error)
	// Get returns what is known of a database that was deleted; ErrNoRow where it never was.
	Get(ctx context.Context, db id.DatabaseID) (deletion.Scene, error)
	// List returns the deleted databases of an account, the one deleted last first.
	List(ctx context.Context, account id.AccountID, p Page) ([]deletion.Scene, error)
	// Count returns what databases of an account are deleted and not purged: previews, or all others.
	Count(ctx context.Context, of id.AccountID, previews bool) (account.Deleted, error)
	// Due lists up to limit deleted databases whose time is over and of which no operation is open, the earliest first. Those of
	// suspended accounts are left out.
	Due(ctx context.Context, now time.Time, limit int) ([]deletion.Tombstone, error)
	// SetRecovery stores which operation is to recover the database; ErrNoRow where it has no tombstone.
	SetRecovery(ctx context.Context, db id.DatabaseID, op id.OperationID) error
	// Recovered sets PurgeAfter to deletion.Never, so that Due does not look at databases that were recovered; ErrNoRow where the
	// database has no tombstone.
	Recovered(ctx context.Context, db id.DatabaseID) error
	// Skipped returns what of the access snapshot is not in force any more, in the order of the IDs.
	Skipped(ctx context.Context, db id.DatabaseID) (deletion.Skipped, error)
}
