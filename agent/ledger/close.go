package ledger

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// close undoes what an operation left unfinished, and makes the agent refuse every later command of it. If the operation is
// complete, close is refused with "completed", and that stays.
func (l *Ledger) close(ctx context.Context, e protocol.Command, c command.Close) (none command.None, err error) {
	operation := string(c.OperationID)
	all, err := l.Jobs.Of(ctx, c.OperationID)
	if err != nil {
		return none, err
	}
	// The jobs are asked when they have ended: one may become complete until then, and of one in its last transaction nobody can
	// tell.
	if err := l.refuseCompleted(ctx, operation, nil); err != nil {
		return none, err
	}
	if len(all) > 0 {
		if err := l.Jobs.End(ctx, c.OperationID); err != nil {
			return none, err
		}
		if err := l.refuseCompleted(ctx, operation, all); err != nil {
			return none, err
		}
	}
	if err := pg.Atomically(ctx, l.db, "UPDATE ledger.operation SET closed = true WHERE id = "+pg.Quote(operation)); err != nil {
		return none, err
	}
	crash.Point(crash.CloseRecorded)
	if err := l.undo(ctx, operation, all); err != nil {
		return none, err
	}
	return Conclude(ctx, l, e, none, crash.CloseReply, "DELETE FROM ledger.job WHERE operation_id = "+pg.Quote(operation))
}

func (l *Ledger) undo(ctx context.Context, operation string, all []jobs.Job) error {
	for _, undo := range l.beforeJobs {
		if err := undo(ctx, operation); err != nil {
			return err
		}
	}
	for _, j := range all {
		if err := l.Jobs.Discard(ctx, j); err != nil {
			return err
		}
		crash.Point(crash.CloseEmptied)
	}
	for _, undo := range l.afterJobs {
		if err := undo(ctx, operation); err != nil {
			return err
		}
	}
	return nil
}

// Completing says which results of a kind of command complete an operation that it is the purpose of. Results of other kinds
// complete none. Neither do those of a command that is a step of something larger: its step has another name than its kind.
func Completing[C command.Returning[R], R any](l *Ledger, completes func(result R) bool) {
	var zero C
	l.completes[zero.About().Kind] = func(text []byte) (bool, error) {
		result := zero.Reply()
		err := json.Unmarshal(text, &result)
		return err == nil && completes(result), err
	}
}

// Whether adds a look whether something else than a stored result shows that an operation is complete.
func (l *Ledger) Whether(has func(ctx context.Context, operation string) (bool, error)) {
	l.completed = append(l.completed, has)
}

// BeforeJobs adds what undoes a part of an operation that is closed, before what its jobs left is discarded.
func (l *Ledger) BeforeJobs(undo func(ctx context.Context, operation string) error) {
	l.beforeJobs = append(l.beforeJobs, undo)
}

// AfterJobs adds what does so after that.
func (l *Ledger) AfterJobs(undo func(ctx context.Context, operation string) error) {
	l.afterJobs = append(l.afterJobs, undo)
}

// refuseCompleted refuses if the operation is complete: the result of its command says so or, for a job, it has made everything
// although the agent died before it could report that. A job whose failure is stored can be closed, whatever it left.
func (l *Ledger) refuseCompleted(ctx context.Context, operation string, all []jobs.Job) error {
	const query = `SELECT EXISTS (SELECT FROM ledger.operation WHERE id = $1 AND closed)`
	closed, err := pg.One[bool](ctx, l.db, query, operation)
	if err != nil || closed { // closed: an interrupted close continues
		return err
	}
	results, err := l.results(ctx, operation)
	if err != nil {
		return err
	}
	completed := false
	for kind, result := range results {
		if completes := l.completes[kind]; completes != nil && !completed {
			if completed, err = completes(result); err != nil {
				return err
			}
		}
	}
	for _, has := range l.completed {
		if !completed {
			if completed, err = has(ctx, operation); err != nil {
				return err
			}
		}
	}
	for _, j := range all {
		if _, stored := results[j.Kind]; !completed && !stored && j.Step == string(j.Kind) {
			if completed, err = l.Jobs.Complete(ctx, j); err != nil {
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
func (l *Ledger) results(ctx context.Context, operation string) (map[command.Kind][]byte, error) {
	const query = `SELECT kind, result FROM ledger.command WHERE operation_id = $1 AND step = kind AND result IS NOT NULL`
	results := map[command.Kind][]byte{}
	err := pg.Each(ctx, l.db, func(rows *sql.Rows) error {
		var kind command.Kind
		var result []byte
		err := rows.Scan(&kind, &result)
		results[kind] = result
		return err
	}, query, operation)
	return results, err
}
