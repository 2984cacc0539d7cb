package executor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/command"
)

// A backup runs what customers have written, and that can bring PostgreSQL down for everybody: a session that takes too much
// memory is killed by the kernel, and then PostgreSQL ends all others and recovers. So an attempt is entered in the ledger
// before it begins, and struck out when it has ended, however, and PostgreSQL has not gone down since. An attempt that stays
// there was cut short: by PostgreSQL's end or by the agent's. An administrator's restart of PostgreSQL counts too, and one of
// the agent that does not wait for its end, because nobody can tell them apart for sure. That is why a backup may be cut short
// more than once.

const (
	backupAttempts = 3 // that fail while PostgreSQL stays up
	attemptPause   = time.Second
	cutShortLimit  = 3
	firstPause     = time.Second // after the first attempt that was cut short
	pauseGrowth    = 30
)

// attempts runs a backup until it has an outcome. Failures while PostgreSQL stays up are counted for this job, attempts that were
// cut short for the operation.
func (x *Executor) attempts(ctx context.Context, j *job) (command.BackupReport, error) {
	var last error
	for failed := 0; ; {
		cut, err := x.cutShort(ctx, j.backup)
		if err != nil {
			return command.BackupReport{}, err
		}
		report, stayedUp, err := x.attempt(ctx, j, cut, last)
		if err == nil || ctx.Err() != nil {
			return report, err
		}
		x.log.Warn("a backup attempt failed", zap.String("operationId", string(j.backup.OperationID)),
			zap.Bool("postgresqlStayedUp", stayedUp), zap.Int("cutShortBefore", cut), zap.Error(err))
		if stayedUp {
			failed++
		}
		if failed == backupAttempts {
			return failure(err), nil
		}
		last = err
		if err := wait(ctx, attemptPause); err != nil {
			return report, err
		}
	}
}

// attempt makes the next attempt, or ends the backup. PostgreSQL has just recovered where one was cut short, so it is left
// alone for a while. The last attempt waits for those of others: one whose backup is no danger is not cut short again by one
// that is.
func (x *Executor) attempt(ctx context.Context, j *job, cut int, last error) (r command.BackupReport, stayedUp bool, err error) {
	if cut >= cutShortLimit {
		return x.entered(ctx, j.backup, func() (command.BackupReport, error) {
			return x.backups.Abandon(ctx, j.backup, cut, last)
		})
	}
	if err := wait(ctx, x.pauseAfter(cut)); err != nil {
		return r, false, err
	}
	among := newGauge(1)
	if cut == cutShortLimit-1 {
		among = x.lastAttempts
	}
	err = among.run(ctx, func() error {
		r, stayedUp, err = x.entered(ctx, j.backup, func() (command.BackupReport, error) {
			return x.backups.Run(ctx, j.backup, j.tell)
		})
		return err
	})
	return r, stayedUp, err
}

func (x *Executor) pauseAfter(cut int) time.Duration {
	pause := time.Duration(0)
	for range cut {
		pause = max(pauseGrowth*pause, cmp.Or(x.BackupPause, firstPause))
	}
	return pause
}

// entered makes an attempt that is in the ledger meanwhile, and reports whether PostgreSQL stayed up. Its checkpointer is a new
// one after every start and every recovery. A job that is canceled, as by a stop of the agent, is not cut short.
func (x *Executor) entered(
	ctx context.Context, b Backup, run func() (command.BackupReport, error),
) (r command.BackupReport, stayedUp bool, err error) {
	const enter = `UPDATE ledger.backup b SET cut_short = b.cut_short + 1 FROM pg_stat_activity a
		WHERE b.operation_id = $1 AND a.backend_type = 'checkpointer' RETURNING a.backend_start`
	const strikeOut = `UPDATE ledger.backup b SET cut_short = b.cut_short - 1 FROM pg_stat_activity a
		WHERE b.operation_id = $1 AND a.backend_type = 'checkpointer' AND a.backend_start = $2`
	var started time.Time
	if err := x.db.QueryRowContext(ctx, enter, string(b.OperationID)).Scan(&started); err != nil {
		return r, false, err
	}
	r, err = run()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	defer cancel()
	done, unstruck := x.db.ExecContext(ctx, strikeOut, string(b.OperationID), started)
	if unstruck != nil {
		return r, false, err
	}
	n, _ := done.RowsAffected() // PostgreSQL always tells
	return r, n == 1, err
}

// cutShort returns how many attempts at a backup were cut short. It waits until PostgreSQL answers. A backup that the ledger
// does not know is an error: its next command enters it again.
func (x *Executor) cutShort(ctx context.Context, b Backup) (n int, err error) {
	const query = "SELECT cut_short FROM ledger.backup WHERE operation_id = $1"
	for {
		err := x.db.QueryRowContext(ctx, query, string(b.OperationID)).Scan(&n)
		if err == nil || errors.Is(err, sql.ErrNoRows) {
			return n, err
		}
		if err := wait(ctx, attemptPause); err != nil {
			return 0, err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// failure is the report of a backup that was given up.
func failure(cause error) command.BackupReport {
	message := "the database could not be dumped, or the file not be checked; the agent's log says why"
	var told Explained
	if errors.As(cause, &told) {
		message = told.ForCustomer()
	}
	return command.BackupReport{State: command.BackupFailed, Reason: command.ReasonFailed, Message: message}
}
