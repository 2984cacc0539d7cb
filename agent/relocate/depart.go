package relocate

import (
	"context"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// depart removes a database that another server has now, with its logins. Its backups stay, and with them their key. What was
// removed before it was interrupted, it does not find again, and goes on.
func (x *Relocator) depart(ctx context.Context, e protocol.Command, c command.Depart) (none command.None, err error) {
	d, found, err := x.ledger.Database(ctx, string(c.DatabaseID))
	if err != nil {
		return none, err
	}
	const query = "SELECT EXISTS (SELECT FROM ledger.parted WHERE operation_id = $1 AND database_id = $2)"
	parted, err := pg.One[bool](ctx, x.db, query, e.OperationID, string(c.DatabaseID))
	if err == nil && found && !parted {
		err = command.Refuse(command.ReasonInService, "the database is in service")
	}
	if err != nil {
		return none, err
	}
	crash.Point(crash.DepartAdmitted)
	if err := x.ledger.DiscardPassing(ctx, e.OperationID); err != nil {
		return none, err
	}
	crash.Point(crash.DepartUnkept)
	if found {
		if err := x.giveUp(ctx, e.OperationID, d); err != nil {
			return none, err
		}
	}
	none, err = ledger.Conclude(ctx, x.ledger, e, none, crash.DepartReply, append(forgetStatements(string(c.DatabaseID)),
		"DELETE FROM ledger.parted WHERE database_id = "+pg.Quote(string(c.DatabaseID)))...)
	x.AskForSweep()
	return none, err
}

// giveUp drops the database and its logins.
func (x *Relocator) giveUp(ctx context.Context, operation string, d ledger.Database) error {
	keep := "INSERT INTO ledger.departed (database_id, operation_id, backup_key) SELECT id, " + pg.Quote(operation) +
		", backup_key FROM ledger.database WHERE id = " + pg.Quote(d.ID) +
		" ON CONFLICT (database_id) DO UPDATE SET operation_id = excluded.operation_id, backup_key = excluded.backup_key"
	if err := pg.Atomically(ctx, x.db, keep); err != nil {
		return err
	}
	if err := x.databases.Expel(ctx, d); err != nil { // an administrator may have let somebody in
		return err
	}
	if err := x.databases.DropMade(ctx, d, d.MadeBy); err != nil {
		return err
	}
	crash.Point(crash.DepartDropped)
	if err := x.databases.DropLogins(ctx, d); err != nil {
		return err
	}
	x.pooler.SyncSoon(x.ledger.PoolerState)
	return nil
}
