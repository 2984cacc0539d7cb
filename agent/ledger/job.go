package ledger

import (
	"context"
	"encoding/json"
	"strings"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// OnJob has the commands of a type carried out as jobs. A command starts its job, or reports the progress. After a restart of the
// agent there is no job, and the ledger has no result: then it starts one, which takes up what its predecessor left.
func OnJob[C command.Returning[R], R any](l *Ledger, k jobs.Kind[C, R]) {
	jobs.Register(l.Jobs, k)
	Completing[C](l, func(result R) bool { return !k.Passing && k.Made(result) })
	On(l, func(ctx context.Context, e protocol.Command, c C) (zero R, err error) {
		if k.Check != nil && !l.Jobs.Has(id.OperationID(e.OperationID), e.Step) {
			if err := k.Check(ctx, id.OperationID(e.OperationID), c); err != nil {
				return zero, err
			}
		}
		if k.Told != nil {
			k.Told(id.OperationID(e.OperationID), c)
		}
		j, err := l.planJob(ctx, e, c, k.Apart != nil && k.Apart(c))
		if err != nil {
			return zero, err
		}
		crash.Point(crash.BackupAdmitted)
		w, err := l.Jobs.Begin(ctx, j)
		if err != nil {
			return zero, err
		}
		crash.Point(crash.BackupStarted)
		if !w.IsOver(ctx) {
			return k.Running(w.Standing()), nil
		}
		result, err := l.concludeJob(ctx, e, w)
		if err != nil {
			return zero, err
		}
		if k.Over != nil {
			k.Over(id.OperationID(e.OperationID), c)
		}
		return result.Value.(R), nil //nolint:forcetypeassert // the kind made it
	})
}

// concludeJob stores the result of a job that is over. A job that may be retried starts again with the next command.
func (l *Ledger) concludeJob(ctx context.Context, e protocol.Command, w *jobs.Running) (jobs.Result, error) {
	result, err := w.Result()
	if err != nil {
		l.Jobs.Forget(w)
		return result, err
	}
	crash.Point(crash.BackupFinished)
	if err := pg.Atomically(ctx, l.db, Outcome(e, result.Value)); err != nil {
		return result, err
	}
	l.Jobs.Forget(w)
	if !result.Made {
		crash.Point(crash.BackupFailed)
		l.discardFailed(ctx, w.Job)
	}
	crash.Point(crash.BackupReply)
	return result, nil
}

// discardFailed removes what a job left whose failure is stored: even a good file, if its verification could not be carried out
// or recorded. What cannot be removed now is left to operation.close, which follows every failure.
func (l *Ledger) discardFailed(ctx context.Context, j jobs.Job) {
	if err := l.Jobs.Discard(ctx, j); err != nil {
		l.log.Warn("what a failed job left is not removed yet", zap.String("operationId", string(j.OperationID)),
			zap.String("databaseId", string(j.DatabaseID)), zap.String("database", j.Database), zap.Error(err))
	}
}

// planJob completes a job with what the ledger knows of the database that it is about, and enters it there. A job about none is
// nobody's. One that is apart may be about a database that is out of service.
func (l *Ledger) planJob(ctx context.Context, e protocol.Command, c command.Command, apart bool) (j jobs.Job, err error) {
	payload, err := json.Marshal(c)
	if err != nil {
		return j, err
	}
	j = jobs.Job{
		OperationID: id.OperationID(e.OperationID), Step: e.Step, Kind: e.Kind, Payload: payload, Secrets: command.Secrets(c),
	}
	if of, is := strings.CutPrefix(e.Resource, DatabaseResource("")); is {
		d, err := l.Known(ctx, of)
		if err == nil && !apart {
			err = d.Serves()
		}
		if err != nil {
			return j, err
		}
		j.DatabaseID, j.Database, j.Account = id.DatabaseID(d.ID), d.Name, id.AccountID(d.Account)
		j.Roles, err = pg.Column(ctx, l.db, "SELECT name FROM ledger.role WHERE database_id = $1 ORDER BY name", d.ID)
		if err != nil {
			return j, err
		}
	}
	return j, l.Jobs.Remember(ctx, j)
}
