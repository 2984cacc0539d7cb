package relocate

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// purge removes an isolated database for good, or what is left of one that has no name yet or that PostgreSQL no longer has. What
// was removed before it was interrupted, it does not find again, and goes on.
func (x *Relocator) purge(ctx context.Context, e protocol.Command, c command.Purge) (none command.None, err error) {
	d, found, err := x.ledger.Database(ctx, string(c.DatabaseID))
	if err == nil && found && d.Named() {
		err = x.canBePurged(ctx, d)
	}
	if err == nil {
		err = x.ledger.Vouched(ctx, c.DatabaseID, id.OperationID(e.OperationID))
	}
	if err != nil {
		return none, err
	}
	crash.Point(crash.PurgeAdmitted)
	if err := errors.Join(x.discardJobs(ctx, c.DatabaseID), x.RemoveFiles(ctx, c.DatabaseID)); err != nil {
		return none, err
	}
	crash.Point(crash.PurgeFiles)
	if found {
		if err := x.purgeDatabase(ctx, d); err != nil {
			return none, err
		}
	}
	none, err = ledger.Conclude(ctx, x.ledger, e, none, crash.PurgeReply, forgetStatements(string(c.DatabaseID))...)
	x.AskForSweep()
	return none, err
}

// canBePurged refuses a database that is in service, also as another one that an administrator has put in its place, one that the
// ledger takes for another, as it is never dropped by its oid alone, and one that somebody holds whom the agent does not end.
func (x *Relocator) canBePurged(ctx context.Context, d ledger.Database) error {
	const replaced = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
	now, err := x.nameNow(ctx, d)
	if err == nil && now == "" && d.Isolated == "" {
		var another bool
		if another, err = pg.One[bool](ctx, x.db, replaced, d.Name); another {
			return command.Refuse(command.ReasonInService, "customers reach another database, which has the name of this one")
		}
	}
	switch {
	case err != nil || now == "":
		return err
	case d.Isolated == "":
		return command.Refuse(command.ReasonInService, "the database is in service")
	case now != d.Isolated:
		return command.Refuse(command.ReasonFailed, "the database is no longer the one that the agent has isolated")
	}
	return x.awaitNone(ctx, "in its way", holding, d.OID, d.ID)
}

// purgeDatabase drops a database with its logins. Of an isolated one nobody can be in it. What has no name is made by an
// operation, of which no command is carried out any more.
func (x *Relocator) purgeDatabase(ctx context.Context, d ledger.Database) error {
	if !d.Named() {
		closed := "UPDATE ledger.operation SET closed = true WHERE id = " + pg.Quote(d.MadeBy)
		if err := pg.Atomically(ctx, x.db, closed); err != nil {
			return err
		}
	}
	if d.Isolated == "" {
		if err := x.databases.Expel(ctx, d); err != nil {
			return err
		}
	}
	if err := x.ledger.Purging.Run(ctx, func() error { return x.databases.DropMade(ctx, d, d.MadeBy) }); err != nil {
		return err
	}
	crash.Point(crash.PurgeDropped)
	if err := x.databases.DropLogins(ctx, d); err != nil {
		return err
	}
	crash.Point(crash.PurgeForgotten)
	x.pooler.SyncSoon(x.ledger.PoolerState)
	return nil
}

// discardJobs ends the long work on a database, and removes what it has made.
func (x *Relocator) discardJobs(ctx context.Context, db id.DatabaseID) error {
	const query = "SELECT DISTINCT operation_id FROM ledger.job WHERE database_id = $1"
	operations, err := pg.Column(ctx, x.db, query, string(db))
	for _, o := range operations {
		err = errors.Join(err, x.discardJobsOf(ctx, db, id.OperationID(o)))
	}
	return err
}

func (x *Relocator) discardJobsOf(ctx context.Context, db id.DatabaseID, operation id.OperationID) error {
	if err := x.ledger.Jobs.End(ctx, operation); err != nil {
		return err
	}
	all, err := x.ledger.Jobs.Of(ctx, operation)
	for _, j := range all {
		if j.DatabaseID == db {
			err = errors.Join(err, x.ledger.Jobs.Discard(ctx, j))
		}
	}
	return err
}

// forgetStatements remove what the ledger has of a database beside its row and its roles. The sweep drops copies that nobody
// wants. What operations were told is forgotten with them; see ledger.Prune.
func forgetStatements(db string) []string {
	return append(ledger.ForgetTold(db),
		"DELETE FROM ledger.job WHERE database_id = "+pg.Quote(db),
		"UPDATE ledger.copy SET until_closed = false WHERE database_id = "+pg.Quote(db))
}
