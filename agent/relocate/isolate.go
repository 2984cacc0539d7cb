package relocate

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// An isolated database is out of service: its row in the ledger keeps its name, so nobody else can have that, and says under
// which it stands. PostgreSQL lets nobody connect to it, not the agent either; PgBouncer does not know it; its gates are
// closed, and its logins are NOLOGIN. All that belongs to it is as it was, since PostgreSQL knows it by oid.

// isolate takes a database out of service. Everybody is shut out first, as by setAccess; then one transaction does it all, with
// the outcome. What fails before has changed nothing else.
func (x *Relocator) isolate(ctx context.Context, e protocol.Command, c command.Isolate) (none command.None, err error) {
	d, found, err := x.ledger.Database(ctx, string(c.DatabaseID))
	switch {
	case err != nil:
		return none, err
	case !found || !d.Named():
		return none, ledger.NoDatabase(string(c.DatabaseID))
	case d.Isolated != "": // by another operation
		return ledger.Conclude(ctx, x.ledger, e, none, crash.IsolateReply, keepFile(e.OperationID))
	}
	if err := x.canBeIsolated(ctx, e, d); err != nil {
		return none, err
	}
	crash.Point(crash.IsolateAdmitted)
	limited, cancel := context.WithTimeout(ctx, isolateTime)
	defer cancel()
	if err := x.takeOut(limited, e, d); err != nil {
		// The answer to the commit may have been lost.
		if now, _, unread := x.ledger.Database(ctx, d.ID); unread != nil || now.Isolated == "" {
			return none, orBusy(ctx, limited, err)
		}
	}
	crash.Point(crash.IsolateReply)
	x.pooler.SyncSoon(x.ledger.PoolerState) // many that go together are one reload
	return none, nil
}

// canBeIsolated refuses what is not whole: a clone without its data, a file that is still being made or checked, and what is no
// longer the database that the agent has made.
func (x *Relocator) canBeIsolated(ctx context.Context, e protocol.Command, d ledger.Database) error {
	if x.ledger.Jobs.Has(id.OperationID(e.OperationID), command.Step(command.Backup{ForDeletion: true})) {
		return command.Refuse(command.ReasonBusy, "the backup that the deletion needs is not over")
	}
	if err := x.databases.RefuseUnfilled(ctx, d); err != nil {
		return err
	}
	return x.standsAs(ctx, d, d.Name)
}

// isolateTime bounds how long whoever is in the way is waited for, and ended.
const isolateTime = 15 * time.Second

// isolatedName is no customer's: their names have no underscore.
func isolatedName(db string) string { return "deleted_" + id.Compact(id.DatabaseID(db)) }

// keepFile makes it a file like others: closing the operation no longer removes it.
func keepFile(operation string) string {
	return "DELETE FROM ledger.job WHERE operation_id = " + pg.Quote(operation) + " AND " + ledger.ForDeletion
}

// takeOut shuts everybody out and takes the database out of service. It begins with those whom it cannot end: what one of them
// has prepared may even keep the logins from being closed.
func (x *Relocator) takeOut(ctx context.Context, e protocol.Command, d ledger.Database) error {
	if err := x.awaitUnheld(ctx, d); err != nil {
		return err
	}
	if err := x.databases.Expel(ctx, d); err != nil {
		return err
	}
	if err := x.awaitUnheld(ctx, d); err != nil {
		return err
	}
	crash.Point(crash.IsolateAlone)
	as := isolatedName(d.ID)
	return x.pushAlone(ctx, d, "ALTER DATABASE "+pg.Ident(d.Name)+" RENAME TO "+pg.Ident(as),
		"ALTER DATABASE "+pg.Ident(as)+" ALLOW_CONNECTIONS false",
		"SELECT ledger.isolate("+pg.Quote(d.ID)+", "+pg.Quote(as)+")", keepFile(e.OperationID), ledger.Outcome(e, command.None{}))
}

// holding are those who hold a lock on a database, by whatever statement about it, whom the agent does not end: administrators,
// as while they copy it, and prepared transactions. Of the latter it names those of the database's own roles.
const holding = `SELECT coalesce(a.usename, 'a prepared transaction') FROM pg_locks l
		LEFT JOIN pg_stat_activity a ON a.pid = l.pid LEFT JOIN pg_roles r ON r.oid = a.usesysid
		WHERE l.locktype = 'object' AND l.classid = 'pg_database'::regclass AND l.objid = $1 AND l.granted
			AND (l.pid IS NULL OR r.rolsuper)
	UNION SELECT 'prepared transaction ' || x.gid FROM pg_prepared_xacts x
		WHERE x.owner IN (SELECT p.name FROM ledger.role p WHERE p.database_id = $2) ORDER BY 1`

// awaitUnheld waits until nobody is in the database, or holds it, whom the agent does not end. ReasonBusy: somebody does.
func (x *Relocator) awaitUnheld(ctx context.Context, d ledger.Database) error {
	if err := x.awaitAlone(ctx, d); err != nil {
		return err
	}
	return x.awaitNone(ctx, "in its way", holding, d.OID, d.ID)
}

// pushAlone runs statements of which the first renames a database, in one transaction. Another account's login, which the owner
// has let in, can come back as fast as it is ended; once the rename waits for those who are in the database, nobody else comes
// in, and they are ended meanwhile. The first try is for when nobody is there.
func (x *Relocator) pushAlone(ctx context.Context, d ledger.Database, statements ...string) error {
	limited, cancel := context.WithTimeout(ctx, aloneTry)
	defer cancel()
	err := pg.Send(limited, x.db, pg.Transaction(append([]string{ledger.Soon}, statements...)))
	again := err != nil && limited.Err() != nil
	push := pg.Transaction(append([]string{ledger.Firmly}, statements...))
	end := func(ctx context.Context) error { return x.endOnce(ctx, d) }
	for ; ctx.Err() == nil && (again || ledger.InTheWay(err) || pg.State(err) == ledger.ObjectInUse); again = false {
		err = x.ledger.Pushing.Run(ctx, func() error {
			return pg.Freshly(func() error { return x.ledger.EndingBlockers(ctx, push, end) })
		})
	}
	return err
}

// aloneTry is how long a rename may hold a connection of the pool: PostgreSQL waits for others to leave the database.
const aloneTry = time.Second

// endOnce terminates customers' sessions of a database, and waits for none to end.
func (x *Relocator) endOnce(ctx context.Context, d ledger.Database) error {
	_, err := x.db.ExecContext(ctx, "SELECT pg_terminate_backend(a.pid)"+ledger.ForeignSessions, d.Name, d.ID)
	return err
}

// standsAs refuses a database that PostgreSQL does not have under this name and with the oid of the ledger.
func (x *Relocator) standsAs(ctx context.Context, d ledger.Database, name string) error {
	switch now, err := x.nameNow(ctx, d); {
	case err != nil:
		return err
	case now == "":
		return ledger.NoDatabase(d.ID)
	case now != name:
		return command.Refuse(command.ReasonFailed, "the database is no longer the one that the agent has made")
	}
	return nil
}

// nameNow is the name that a database has in PostgreSQL; empty where that has none of its oid.
func (x *Relocator) nameNow(ctx context.Context, d ledger.Database) (string, error) {
	return pg.One[string](ctx, x.db, "SELECT coalesce((SELECT datname FROM pg_database WHERE oid = $1), '')", d.OID)
}

// orBusy says that somebody was in the way where the time that there was for it, limited, is over. ctx is that of the command.
func orBusy(ctx, limited context.Context, why error) error {
	switch {
	case command.RefusedFor(why, command.ReasonBusy), errors.Is(why, pooler.ErrUnreachable), ctx.Err() != nil:
		return why
	case ledger.InTheWay(why), pg.State(why) == ledger.ObjectInUse, limited.Err() != nil:
		return busy(why, "")
	}
	return why
}
