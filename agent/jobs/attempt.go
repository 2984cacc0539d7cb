package jobs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
)

// A job runs what customers have written, and that can bring PostgreSQL down for everybody: a session that takes too much
// memory is killed by the kernel, and then PostgreSQL ends all others and recovers. So an attempt is entered in the ledger
// before it begins, and struck out when it has ended, however, and PostgreSQL has not gone down since. An attempt that stays
// there was cut short: by PostgreSQL's end or by the agent's. An administrator's restart of PostgreSQL counts too, and one of
// the agent that does not wait for its end, because nobody can tell them apart for sure. That is why a job may be cut short
// more than once.

const (
	maxFailures  = 3 // while PostgreSQL stays up
	attemptPause = time.Second
	// awayPause is before another attempt where something is Away.
	awayPause       = 5 * time.Second
	defaultPatience = 15 * time.Minute
	cutShortLimit   = 3
	firstPause      = time.Second // after the first attempt that was cut short
	pauseGrowth     = 30
	// statementTime bounds one statement at the end of an attempt.
	statementTime = 10 * time.Second
)

// attempts runs a job until it has an outcome. Failures while PostgreSQL stays up are counted for this process, attempts that
// were cut short for the operation.
func (r *Runner) attempts(ctx context.Context, k kind, w *Running) (Result, error) {
	var last error
	var waited time.Duration
	for failed := 0; ; {
		cut, err := r.cutShort(ctx, w.Job)
		if err != nil {
			return Result{}, err
		}
		result, stayedUp, err := r.attempt(ctx, k, w, cut, last)
		if err == nil || ctx.Err() != nil {
			return result, err
		}
		r.log.Warn("an attempt at a job failed", append(w.Job.fields(), zap.String("step", w.Job.Step),
			zap.Bool("postgresqlStayedUp", stayedUp), zap.Int("cutShortBefore", cut), zap.Error(err))...)
		away := stayedUp && IsAway(err)
		switch {
		case away:
			waited += waitedFor(err)
		case stayedUp:
			failed++
		}
		if failed == maxFailures || away && waited >= cmp.Or(r.Patience, defaultPatience) {
			return k.failed(err), nil
		}
		last = err
		if away {
			waited += awayPause
			err = w.aside(ctx, func(ctx context.Context) error { return loop.Wait(ctx, awayPause) })
		} else {
			err = loop.Wait(ctx, attemptPause)
		}
		if err != nil {
			return result, err
		}
	}
}

// attempt makes the next attempt, or ends the job. PostgreSQL has just recovered where one was cut short, so it is left alone for
// a while. The last attempt waits for those of others in the same slots: one whose job is no danger is not cut short again by one
// that is.
func (r *Runner) attempt(
	ctx context.Context, k kind, w *Running, cut int, last error,
) (result Result, stayedUp bool, err error) {
	if cut >= cutShortLimit {
		return r.entered(ctx, w.Job, func() (Result, error) { return k.abandon(ctx, w.Job, cut, last) })
	}
	if err := loop.Wait(ctx, r.pauseAfter(cut)); err != nil {
		return result, false, err
	}
	if cut == cutShortLimit-1 {
		if err := w.slots.takeLast(ctx); err != nil {
			return result, false, err
		}
		w.isLast = true
		defer func() {
			if w.isLast {
				w.slots.leaveLast()
			}
			w.isLast = false
		}()
	}
	return r.entered(ctx, w.Job, func() (Result, error) { return k.run(ctx, w.onJob(), w.tell) })
}

func (r *Runner) pauseAfter(cut int) time.Duration {
	pause := time.Duration(0)
	for range cut {
		pause = max(pauseGrowth*pause, cmp.Or(r.Pause, firstPause))
	}
	return pause
}

// entered makes an attempt that is in the ledger meanwhile, and reports whether PostgreSQL stayed up. Its checkpointer is a new
// one after every start and every recovery. A job that is canceled, as by a stop of the agent, is not cut short.
func (r *Runner) entered(
	ctx context.Context, j Job, run func() (Result, error),
) (result Result, stayedUp bool, err error) {
	const enter = `UPDATE ledger.job j SET cut_short = j.cut_short + 1 FROM pg_stat_activity a
		WHERE j.operation_id = $1 AND j.step = $2 AND a.backend_type = 'checkpointer' RETURNING a.backend_start`
	const strikeOut = `UPDATE ledger.job j SET cut_short = j.cut_short - 1 FROM pg_stat_activity a
		WHERE j.operation_id = $1 AND j.step = $2 AND a.backend_type = 'checkpointer' AND a.backend_start = $3`
	var started time.Time
	if err := r.db.QueryRowContext(ctx, enter, string(j.OperationID), j.Step).Scan(&started); err != nil {
		return result, false, err
	}
	result, err = run()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTime)
	defer cancel()
	done, unstruck := r.db.ExecContext(ctx, strikeOut, string(j.OperationID), j.Step, started)
	if unstruck != nil {
		return result, false, err
	}
	n, _ := done.RowsAffected() // PostgreSQL always tells
	return result, n == 1, err
}

// cutShort returns how many attempts at a job were cut short. It waits until PostgreSQL answers. A job that the ledger does not
// know is an error: its next command enters it again.
func (r *Runner) cutShort(ctx context.Context, j Job) (n int, err error) {
	const query = "SELECT cut_short FROM ledger.job WHERE operation_id = $1 AND step = $2"
	for {
		err := r.db.QueryRowContext(ctx, query, string(j.OperationID), j.Step).Scan(&n)
		if err == nil || errors.Is(err, sql.ErrNoRows) {
			return n, err
		}
		if err := loop.Wait(ctx, attemptPause); err != nil {
			return 0, err
		}
	}
}
