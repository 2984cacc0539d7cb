package relocate

import (
	"context"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/databases"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// rejoin puts an isolated database back into service. One transaction gives it its name again; from then on there is only
// forward. Customers come in last. One that is in service is proved to be, and disturbed by nothing where they are in.
func (x *Relocator) rejoin(ctx context.Context, e protocol.Command, c command.Rejoin) (done command.Rejoined, err error) {
	d, found, err := x.ledger.Database(ctx, string(c.DatabaseID))
	if err == nil && (!found || !d.Named()) {
		err = ledger.NoDatabase(string(c.DatabaseID))
	}
	if err == nil && c.Open && !d.Open {
		err = x.databases.RefuseUnfilled(ctx, d)
	}
	if err != nil {
		return done, err
	}
	crash.Point(crash.RejoinAdmitted)
	if d.Isolated != "" {
		if d, err = x.putBack(ctx, e, d); err != nil {
			return done, err
		}
		crash.Point(crash.RejoinRenamed)
	}
	if err := x.serveAgain(ctx, d, c.Open); err != nil {
		const message = "the database has its name again, but customers are not let in yet; send the command again"
		return done, ledger.Unavailable(message, err)
	}
	return ledger.Conclude(ctx, x.ledger, e, command.Rejoined{DatabaseOID: int64(d.OID)}, crash.RejoinReply)
}

// putBack gives a database its name again. Anybody can hold a lock on it, from whatever database, and is ended.
func (x *Relocator) putBack(ctx context.Context, e protocol.Command, d ledger.Database) (ledger.Database, error) {
	if err := x.standsAs(ctx, d, d.Isolated); err != nil {
		return d, err
	}
	limited, cancel := context.WithTimeout(ctx, isolateTime)
	defer cancel()
	if err := x.awaitNone(limited, "in its way", holding, d.OID, d.ID); err != nil {
		return d, err
	}
	err := x.pushAlone(limited, d, "ALTER DATABASE "+pg.Ident(d.Isolated)+" RENAME TO "+pg.Ident(d.Name),
		"ALTER DATABASE "+pg.Ident(d.Name)+" ALLOW_CONNECTIONS true",
		"SELECT ledger.rejoin("+pg.Quote(d.ID)+", "+pg.Quote(e.OperationID)+")")
	if pg.State(err) == ledger.DuplicateDatabase {
		return d, command.Refuse(command.ReasonNameTaken, "the server has a database named %s that is not ours", d.Name)
	}
	now, unread := x.ledger.InService(ctx, d.ID)
	if unread != nil && err != nil { // otherwise only the answer to the commit was lost
		unread = orBusy(ctx, limited, err)
	}
	return now, unread
}

// serveAgain has customers served. Where they are in already, PgBouncer is not told to connect anew.
func (x *Relocator) serveAgain(ctx context.Context, d ledger.Database, open bool) error {
	if err := x.pooler.Sync(ctx, x.ledger.PoolerState); err != nil {
		return err
	}
	crash.Point(crash.RejoinPooled)
	if !d.Open {
		if err := x.ledger.Reconnecting.Run(ctx, func() error { return x.pooler.Reconnect(ctx, d.Name) }); err != nil {
			return err
		}
	}
	if err := x.isAt(ctx, d, d.OID); err != nil {
		return err
	}
	if open {
		if err := x.databases.LetIn(ctx, d, databases.GateStatement(d, true)); err != nil {
			return err
		}
	}
	crash.Point(crash.RejoinOpened)
	return nil
}

// hasRejoined reports whether an operation has given a database its name again.
func (x *Relocator) hasRejoined(ctx context.Context, operation string) (bool, error) {
	const query = "SELECT EXISTS (SELECT FROM ledger.database WHERE rejoined_by = $1)"
	return pg.One[bool](ctx, x.db, query, operation)
}
