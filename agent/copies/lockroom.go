package copies

import (
	"context"
	"database/sql"

	"github.com/pgherd/pgherd/agent/lockroom"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/core/id"
)

// TakeLocks takes what a dump of a database locks, or who gives all that is in a copy to its owners. It waits until there is
// room. BACKUP_CONFLICT: the database has too many tables and such for the server. The account is that of a dump, where a
// customer's code may run and hold others up.
func (x *Copies) TakeLocks(
	ctx context.Context, db *sql.DB, op id.OperationID, account id.AccountID,
) (release func(), err error) {
	t, err := lockroom.Ask(ctx, db)
	if err != nil {
		return nil, err
	}
	relations, err := lockroom.Relations(ctx, db)
	if err != nil {
		return nil, err
	}
	return x.Locks.Take(ctx, t, lockroom.Claim{By: pgdump.LoginOf(op), Account: account, Objects: relations})
}

// withLocks does something that locks all that is in a copy.
func (x *Copies) withLocks(ctx context.Context, copied *Isolated, do func() error) error {
	var release func()
	err := x.Server.With(copied.Name(), copied.op, func(db *sql.DB) (err error) {
		release, err = x.TakeLocks(ctx, db, copied.op, "")
		return err
	})
	if err != nil {
		return err
	}
	defer release()
	return do()
}
