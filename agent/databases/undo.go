package databases

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
)

// undoCreate removes the database that an operation began to make, with its logins: only what bears the mark of this
// operation, by oid.
func (x *Databases) undoCreate(ctx context.Context, operation string) error {
	const query = "SELECT id FROM ledger.database WHERE made_by = $1 AND isolated IS NULL" // another operation's, which keeps it
	ids, err := pg.Column(ctx, x.db, query, operation)
	for _, id := range ids {
		err = errors.Join(err, x.undoDatabase(ctx, id, operation))
	}
	return err
}

func (x *Databases) undoDatabase(ctx context.Context, id, operation string) error {
	d, _, err := x.ledger.Database(ctx, id)
	if err != nil {
		return err
	}
	release, err := x.ledger.Locks.Take(ctx, ledger.DatabaseResource(d.ID))
	if err != nil {
		return err
	}
	defer release()
	if d.Named() {
		if err := x.Expel(ctx, d); err != nil {
			return err
		}
	}
	crash.Point(crash.CloseEmptied)
	if err := x.DropMade(ctx, d, operation); err != nil {
		return err
	}
	crash.Point(crash.CloseDropped)
	if err := x.DropLogins(ctx, d); err != nil {
		return err
	}
	crash.Point(crash.CloseUndone)
	x.pooler.SyncSoon(x.ledger.PoolerState)
	return nil
}

// DropMade drops the database under whichever of its two names it has. Its oid or, before the rename, its owner proves that it
// is ours.
func (x *Databases) DropMade(ctx context.Context, d ledger.Database, operation string) error {
	const query = `SELECT p.datname FROM pg_database p
		WHERE p.oid = $1 OR p.datname = $2 AND p.datdba = (SELECT oid FROM ledger.role WHERE database_id = $3 AND part = 'holder')`
	names, err := pg.Column(ctx, x.db, query, d.OID, temporaryName(operation), d.ID)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := x.ledger.DropDatabase(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
