package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/preview"
)

// Previews keeps what databases are as previews, for as long as their records are kept. Who adds one holds the lock of its
// account (Accounts.LockForQuota); who changes one has locked its database (Databases.Lock), and then the preview.
type Previews interface {
	// Add stores a preview of a database that is stored in the same transaction. PREVIEW_CONFLICT: the ref has one that is not
	// deleted.
	Add(ctx context.Context, p preview.Preview) error
	// OfRef returns the preview of a ref that is not deleted, nil where there is none, and the highest use that the ref has had.
	OfRef(ctx context.Context, namespace id.NamespaceID, ref string) (live *preview.Preview, used int, err error)
	// Reach returns a preview of the namespace of a CI key, also one that is deleted. ErrNoRow does not distinguish missing
	// databases from those of other namespaces and from those that are no previews. A key that is revoked, unknown or no CI key
	// reaches nothing.
	Reach(ctx context.Context, key id.KeyID, db id.DatabaseID) (preview.Preview, error)
	// Lock returns a preview and locks it until the transaction ends; ErrNoRow for a database that is none.
	Lock(ctx context.Context, db id.DatabaseID) (preview.Preview, error)
	// Save writes every field that can change. PREVIEW_CONFLICT: the ref has another preview that is not deleted.
	Save(ctx context.Context, p preview.Preview) error
	// Over reports whether there is a lease that Lapse would end.
	Over(ctx context.Context, now time.Time) (bool, error)
	// Lapse records the end of up to limit leases whose time is over, and returns how many there were.
	Lapse(ctx context.Context, now time.Time, limit int) (int, error)
	// Due lists expired previews that can be deleted now: of each account on each server the one that has waited longest. Those
	// with an open operation or of a suspended account are left out, and so are all on a server where the deletion of one has begun
	// after the given time and is not over, if the service has begun it.
	Due(ctx context.Context, now, since time.Time) ([]DuePreview, error)
	// Ending lists the deletions that the service has begun because leases had ended, and that are not over.
	Ending(ctx context.Context) ([]EndingPreview, error)
	// Living lists the previews of an account that are not deleted, of one namespace or of all, by when their leases end.
	Living(ctx context.Context, of PreviewFilter, p Page) ([]LivingPreview, error)
}

// PreviewFilter chooses the previews of an account. No namespace: all of them.
type PreviewFilter struct {
	AccountID   id.AccountID
	NamespaceID id.NamespaceID
}

// LivingPreview is a preview with what is seen of its database.
type LivingPreview struct {
	preview.Preview
	Name   string          `db:"name"`
	Status database.Status `db:"status"`
	// OperationID and Kind are of what is under way; empty where nothing is, or only a change of a login.
	OperationID id.OperationID `db:"operation_id"`
	Kind        operation.Kind `db:"kind"`
}

// DuePreview is a preview that is to be deleted, with its server and account.
type DuePreview struct {
	preview.Preview
	ServerID  id.ServerID  `db:"server_id"`
	AccountID id.AccountID `db:"account_id"`
}

// EndingPreview is a preview that the service has begun to delete.
type EndingPreview struct {
	DatabaseID id.DatabaseID `db:"database_id"`
	ServerID   id.ServerID   `db:"server_id"`
	AccountID  id.AccountID  `db:"account_id"`
	Since      time.Time     `db:"ending_since"`
}
