package executor

import (
	"context"
	"database/sql"
	"errors"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// close undoes what an operation left unfinished, and makes the agent refuse every later command of it. If the operation has
// completed a database or a backup, close is refused with "completed", and that stays.
func (x *Executor) close(ctx context.Context, e protocol.Command, c command.Close) (none command.None, err error) {
	operation := string(c.OperationID)
	b, isBackup, err := x.backupOf(ctx, operation)
	if err != nil {
		return none, err
	}
	// Checked twice: a backup may become complete until its job has ended.
	if err := x.refuseCompleted(ctx, operation, b, isBackup); err != nil {
		return none, err
	}
	if isBackup {
		if err := x.endJob(ctx, operation); err != nil {
			return none, err
		}
		if err := x.refuseCompleted(ctx, operation, b, isBackup); err != nil {
			return none, err
		}
	}
	if err := atomically(ctx, x.db, "UPDATE ledger.operation SET closed = true WHERE id = "+quote(operation)); err != nil {
		return none, err
	}
	crash.Point(crash.CloseRecorded)
	if err := x.undo(ctx, operation, b, isBackup); err != nil {
		return none, err
	}
	if err := atomically(ctx, x.db, "DELETE FROM ledger.backup WHERE operation_id = "+quote(operation),
		outcome(e, none)); err != nil {
		return none, err
	}
	crash.Point(crash.CloseReply)
	return none, nil
}

func (x *Executor) undo(ctx context.Context, operation string, b Backup, isBackup bool) error {
	if isBackup {
		if err := x.backups.Discard(ctx, b); err != nil {
			return err
		}
		crash.Point(crash.CloseEmptied)
	}
	return x.undoCreate(ctx, operation)
}

// refuseCompleted refuses if the operation has completed something: its command has a result or, for a backup, it is complete
// although the agent died before it could report that. A backup whose failure is stored can be closed, whatever files it left.
func (x *Executor) refuseCompleted(ctx context.Context, operation string, b Backup, isBackup bool) error {
	const query = `SELECT EXISTS (SELECT FROM ledger.operation WHERE id = $1 AND closed),
			coalesce(bool_or(kind = $2 AND result IS NOT NULL OR kind = $3 AND result->>'state' IN ('done', 'not_verified')), false),
			coalesce(bool_or(kind = $3 AND result->>'state' = 'failed'), false)
		FROM ledger.command WHERE operation_id = $1`
	var closed, completed, failed bool
	create, dump := string(command.EnsureDatabase{}.About().Kind), string(command.Backup{}.About().Kind)
	err := x.db.QueryRowContext(ctx, query, operation, create, dump).Scan(&closed, &completed, &failed)
	if err != nil || closed { // closed: an interrupted close continues
		return err
	}
	if !completed && !failed && isBackup {
		if completed, err = x.backups.Complete(ctx, b); err != nil {
			return err
		}
	}
	if completed {
		return command.Refuse(command.ReasonCompleted, "the operation is complete")
	}
	return nil
}

// backupOf returns the backup of an operation; false if it has none.
func (x *Executor) backupOf(ctx context.Context, operation string) (Backup, bool, error) {
	const query = `SELECT b.database_id, b.filename, b.verify, coalesce(d.name, '')
		FROM ledger.backup b LEFT JOIN ledger.database d ON d.id = b.database_id WHERE b.operation_id = $1`
	var db, filename string
	b := Backup{OperationID: id.OperationID(operation)}
	err := x.db.QueryRowContext(ctx, query, operation).Scan(&db, &filename, &b.Verify, &b.Database)
	if errors.Is(err, sql.ErrNoRows) {
		return b, false, nil
	}
	b.DatabaseID, b.Filename = id.DatabaseID(db), backup.Filename(filename)
	return b, err == nil, err
}

// undoCreate removes the database that an operation began to make, with its logins: only what bears the mark of this
// operation, by oid.
func (x *Executor) undoCreate(ctx context.Context, operation string) error {
	const query = "SELECT id FROM ledger.database WHERE made_by = $1"
	ids, err := pg.Column(ctx, x.db, query, operation)
	for _, id := range ids {
		err = errors.Join(err, x.undoDatabase(ctx, id, operation))
	}
	return err
}

func (x *Executor) undoDatabase(ctx context.Context, id, operation string) error {
	d, _, err := x.database(ctx, id)
	if err != nil {
		return err
	}
	release, err := x.locks.Take(ctx, databaseResource(d.ID))
	if err != nil {
		return err
	}
	defer release()
	if d.named() {
		if err := x.expel(ctx, d); err != nil {
			return err
		}
	}
	crash.Point(crash.CloseEmptied)
	if err := x.dropMade(ctx, d, operation); err != nil {
		return err
	}
	crash.Point(crash.CloseDropped)
	if err := x.dropLogins(ctx, d); err != nil {
		return err
	}
	crash.Point(crash.CloseUndone)
	x.pooler.SyncSoon(x.PoolerState)
	return nil
}

// dropMade drops the database under whichever of its two names it has. Its oid or, before the rename, its owner proves that it
// is ours.
func (x *Executor) dropMade(ctx context.Context, d databaseRow, operation string) error {
	const query = `SELECT p.datname FROM pg_database p
		WHERE p.oid = $1 OR p.datname = $2 AND p.datdba = (SELECT oid FROM ledger.role WHERE database_id = $3 AND part = 'holder')`
	names, err := pg.Column(ctx, x.db, query, d.OID, temporaryName(operation), d.ID)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := x.build(ctx, "DROP DATABASE "+ident(name)+" WITH (FORCE)")
		if err != nil && sqlState(err) != undefinedDatabase {
			return err
		}
	}
	return nil
}
