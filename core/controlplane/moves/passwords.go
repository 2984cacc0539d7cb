package moves

import (
	"context"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/ports"
)

// settled demands, in a transaction, that no change of a login is under way any more: from this commit on none is admitted
// either, until customers are in at the other server. Whoever admits one holds the lock of the database, too. errChanging.
func (t *turn) settled(ctx context.Context, tx ports.Tx) error {
	if _, err := tx.Databases().Lock(ctx, t.Record.ID); err != nil {
		return err
	}
	_, err := tx.RoleChanges().Pending(ctx, t.Record.ID)
	if err == nil {
		return errChanging
	}
	return base.NotFound(err, nil)
}

// errChanging means that a password is being changed where the database is. That ends by itself, and is waited for.
var errChanging = fault.New(fault.DatabaseStateConflict, "a password of the database is being changed")
