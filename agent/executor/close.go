package executor

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// close undoes what an operation left unfinished, and makes the agent refuse every later command of it. If the operation is
// complete, close is refused with "completed", and that stays.
func (x *Executor) close(ctx context.Context, e protocol.Command, c command.Close) (none command.None, err error) {
	operation := string(c.OperationID)
	all, err := x.Jobs.Of(ctx, c.OperationID)
	if err != nil {
		return none, err
	}
	// The jobs are asked when they have ended: one may become complete until then, and of one in its last transaction nobody can
	// tell.
	if err := x.refuseCompleted(ctx, operation, nil); err != nil {
		return none, err
	}
	if len(all) > 0 {
		if err := x.Jobs.End(ctx, c.OperationID); err != nil {
			return none, err
		}
		if err := x.refuseCompleted(ctx, operation, all); err != nil {
			return none, err
		}
	}
	if err := pg.Atomically(ctx, x.db, "UPDATE ledger.operation SET closed = true WHERE id = "+pg.Quote(operation)); err != nil {
		return none, err
	}
	crash.Point(crash.CloseRecorded)
	if err := x.undo(ctx, operation, all); err != nil {
		return none, err
	}
	return conclude(ctx, x, e, none, crash.CloseReply, "DELETE FROM ledger.job WHERE operation_id = "+pg.Quote(operation))
}

func (x *Executor) undo(ctx context.Context, operation string, all []jobs.Job) error {
	if err := x.undoSwitch(ctx, operation); err != nil {
		return err
	}
	for _, j := range all {
		if err := x.Jobs.Discard(ctx, j); err != nil {
			return err
		}
		crash.Point(crash.CloseEmptied)
	}
	return x.undoCreate(ctx, operation)
}

// completing says which results of a kind of command complete an operation that it is the purpose of. Results of other kinds
// complete none. Neither do those of a command that is a step of something larger: its step has another name than its kind.
func completing[C command.Returning[R], R any](x *Executor, completes func(result R) bool) {
	var zero C
	x.completes[zero.About().Kind] = func(text []byte) (bool, error) {
		result := zero.Reply()
		err := json.Unmarshal(text, &result)
		return err == nil && completes(result), err
	}
}

// refuseCompleted refuses if the operation is complete: the result of its command says so or, for a job, it has made everything
// although the agent died before it could report that. A job whose failure is stored can be closed, whatever it left.
func (x *Executor) refuseCompleted(ctx context.Context, operation string, all []jobs.Job) error {
	const query = `SELECT EXISTS (SELECT FROM ledger.operation WHERE id = $1 AND closed)`
	closed, err := pg.One[bool](ctx, x.db, query, operation)
	if err != nil || closed { // closed: an interrupted close continues
		return err
	}
	results, err := x.results(ctx, operation)
	if err != nil {
		return err
	}
	completed := false
	for kind, result := range results {
		if completes := x.completes[kind]; completes != nil && !completed {
			if completed, err = completes(result); err != nil {
				return err
			}
		}
	}
	for _, has := range []func(context.Context, string) (bool, error){x.hasSwitched, x.hasRejoined} {
		if !completed {
			if completed, err = has(ctx, operation); err != nil {
				return err
			}
		}
	}
	for _, j := range all {
		if _, stored := results[j.Kind]; !completed && !stored && j.Step == string(j.Kind) {
			if completed, err = x.Jobs.Complete(ctx, j); err != nil {
				return err
			}
		}
	}
	if completed {
		return command.Refuse(command.ReasonCompleted, "the operation is complete")
	}
	return nil
}

// results are those of the commands that an operation can be for.
func (x *Executor) results(ctx context.Context, operation string) (map[command.Kind][]byte, error) {
	const query = `SELECT kind, result FROM ledger.command WHERE operation_id = $1 AND step = kind AND result IS NOT NULL`
	results := map[command.Kind][]byte{}
	err := pg.Each(ctx, x.db, func(rows *sql.Rows) error {
		var kind command.Kind
		var result []byte
		err := rows.Scan(&kind, &result)
		results[kind] = result
		return err
	}, query, operation)
	return results, err
}

// undoCreate removes the database that an operation began to make, with its logins: only what bears the mark of this
// operation, by oid.
func (x *Executor) undoCreate(ctx context.Context, operation string) error {
	const query = "SELECT id FROM ledger.database WHERE made_by = $1 AND isolated IS NULL" // another operation's, which keeps it
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
		if err := x.dropDatabase(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
