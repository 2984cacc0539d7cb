package relocate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/databases"
	"github.com/pgherd/pgherd/agent/follow"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// partTime bounds how long customers are kept out before it is known whether they can be.
const partTime = 5 * time.Second

// part keeps customers out, and says what the server that follows needs beside the changes. What fails leads back: the database
// is open again as it was.
func (x *Relocator) part(ctx context.Context, e protocol.Command, c command.Part) (parted command.Parted, err error) {
	came := time.Now()
	d, err := x.ledger.InService(ctx, string(c.DatabaseID))
	if err == nil {
		err = x.databases.RefuseUnfilled(ctx, d)
	}
	var kept follow.Kept
	if err == nil && !c.Closed {
		kept, err = x.source.Kept(ctx, id.OperationID(e.OperationID))
	}
	if err != nil {
		return parted, err
	}
	crash.Point(crash.PartAdmitted)
	err = x.within(ctx, d, func(db *sql.DB) (err error) {
		if !c.Closed {
			if err := kept.Same(ctx, db); err != nil { // while customers are served
				return err
			}
		}
		limited, cancel := context.WithTimeout(ctx, partTime)
		defer cancel()
		since, err := x.keepOut(limited, e.OperationID, d)
		if err != nil {
			return orBusy(ctx, limited, err)
		}
		if c.Closed {
			return nil
		}
		if err = kept.Same(ctx, db); err == nil {
			parted, err = follow.Last(ctx, db)
		}
		parted.ServedMilliseconds = since.Sub(came).Milliseconds()
		return err
	})
	if err != nil {
		return parted, x.letBackIn(ctx, e.OperationID, err)
	}
	return ledger.Conclude(ctx, x.ledger, e, parted, crash.PartReply)
}

// within does something with a connection to a database.
func (x *Relocator) within(ctx context.Context, d ledger.Database, do func(*sql.DB) error) error {
	return x.ledger.Inside.Run(ctx, func() error {
		db, err := x.server.Open(d.Name)
		if err != nil {
			return err
		}
		return errors.Join(do(db), db.Close())
	})
}

// writing are those in a database who may still write, and whom the agent does not end: administrators, and prepared
// transactions.
const writing = `SELECT a.usename::text FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
		WHERE a.datid = $1 AND a.backend_type = 'client backend' AND r.rolsuper
	UNION SELECT 'prepared transaction ' || gid FROM pg_prepared_xacts WHERE database = $2 ORDER BY 1`

// keepOut ends who is in the database, and lets nobody in. Until since, customers were served as ever. ReasonBusy: somebody
// cannot be ended.
func (x *Relocator) keepOut(ctx context.Context, operation string, d ledger.Database) (since time.Time, err error) {
	if err := x.awaitNone(ctx, "still in it", writing, d.OID, d.Name); err != nil {
		return since, err
	}
	since = time.Now()
	intent := fmt.Sprintf("INSERT INTO ledger.parted (operation_id, database_id, reopen) VALUES (%s, %s, %t) "+
		"ON CONFLICT DO NOTHING", pg.Quote(operation), pg.Quote(d.ID), d.Open)
	if err := pg.Atomically(ctx, x.db, intent, databases.GateStatement(d, false)); err != nil {
		return since, err
	}
	crash.Point(crash.PartGateClosed)
	if err := x.databases.EmptyAtOnce(ctx, d); err != nil {
		return since, err
	}
	if err := x.awaitNone(ctx, "still in it", writing, d.OID, d.Name); err != nil {
		return since, err
	}
	crash.Point(crash.PartAlone)
	return since, nil
}

// letBackIn opens a database again as it was, after an operation could not part with it, and returns why.
func (x *Relocator) letBackIn(ctx context.Context, operation string, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backTime)
	defer cancel()
	if err := x.undoPart(ctx, operation); err != nil {
		return ledger.Unavailable("the database is not open again yet; send the command again", errors.Join(why, err))
	}
	return why
}

// undoPart is that for an operation that is closed, too.
func (x *Relocator) undoPart(ctx context.Context, operation string) error {
	const query = "SELECT database_id, reopen FROM ledger.parted WHERE operation_id = $1"
	var database string
	var reopen bool
	err := x.db.QueryRowContext(ctx, query, operation).Scan(&database, &reopen)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	d, found, err := x.ledger.Database(ctx, database)
	if err != nil {
		return err
	}
	forget := "DELETE FROM ledger.parted WHERE operation_id = " + pg.Quote(operation)
	if reopen && found && d.InService() {
		err = x.databases.LetIn(ctx, d, forget, databases.GateStatement(d, true))
	} else {
		err = pg.Atomically(ctx, x.db, forget)
	}
	if err == nil {
		crash.Point(crash.PartUndone)
	}
	return err
}

// undoPartOf is undoPart for who does not have the database's turn.
func (x *Relocator) undoPartOf(ctx context.Context, operation string) error {
	ids, err := pg.Column(ctx, x.db, "SELECT database_id FROM ledger.parted WHERE operation_id = $1", operation)
	for _, id := range ids {
		release, err := x.ledger.Locks.Take(ctx, ledger.DatabaseResource(id))
		if err != nil {
			return err
		}
		err = x.undoPart(ctx, operation)
		release()
		if err != nil {
			return err
		}
	}
	return err
}
