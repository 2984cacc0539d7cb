package agent

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pooler"
)

const (
	watchPause = time.Second
	sweepPause = time.Minute
	sweepAgain = 5 * time.Second // where something is left
	prunePause = 24 * time.Hour
)

// beginUpkeep begins what the agent does unasked while it is in charge, until ctx ends.
func (a *Agent) beginUpkeep(ctx context.Context) {
	go a.watchPooler(ctx)
	go a.pooler.EndHanging(ctx, watchPause, pooler.HangTime, a.poolerHung)
	go a.shed(ctx)
	go a.memory.Run(ctx)
	go a.prune(ctx)
	go a.logins.SweepChanged(ctx)
	go a.settings.SettleSessions(ctx)
	go a.guard.Run(ctx)
	go a.endless.Run(ctx)
	go a.commons.Run(ctx)
	go a.rests.Run(ctx)
	go a.forwards.Run(ctx)
	go a.ledger.Retired.Sweep(ctx)
	go a.sweepBackups(ctx)
	go a.source.Run(ctx)
	go a.sweepBlobs(ctx)
	if a.archive != nil {
		go a.archive.Run(ctx)
		go a.marks.Run(ctx)
		go a.drills.Run(ctx)
	}
	go a.readings.Run(ctx)
	go a.sizes.Run(ctx)
	go a.usage.Run(ctx)
	go a.slow.Run(ctx)
	go a.sweepExtensions(ctx)
}

// watchPooler begins with a PgBouncer that did not answer when its files were written: the watch tells of changes only.
func (a *Agent) watchPooler(ctx context.Context) {
	said := ""
	for follows := !a.poolerDown.Load(); !follows; {
		if a.pingPooler(ctx) == nil {
			err := a.pooler.Sync(ctx, a.ledger.PoolerState)
			if follows = err == nil; follows || err.Error() != said {
				a.poolerChanged(err)
			}
			if err != nil {
				said = err.Error()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchPause):
		}
	}
	a.pooler.Watch(ctx, watchPause, a.ledger.PoolerState, a.poolerChanged)
}

func (a *Agent) pingPooler(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	return a.pooler.Ping(ctx)
}

// poolerChanged hears from the watch over PgBouncer.
func (a *Agent) poolerChanged(err error) {
	down := errors.Is(err, pooler.ErrUnreachable)
	a.poolerDown.Store(down)
	a.poolerSeen.Store(&err)
	switch {
	case down:
		a.log.Error("PgBouncer does not answer, so customers cannot connect", zap.Error(err))
	case err != nil:
		a.log.Warn("PgBouncer does not use the desired state", zap.Error(err))
	default:
		a.log.Info("PgBouncer uses the desired state again")
		a.programs.Wake()
	}
}

// poolerHung hears of a PgBouncer that hangs, and nil when none does any more.
func (a *Agent) poolerHung(hang *pooler.Hang) {
	a.poolerHangs.Store(hang)
	if hang != nil && hang.Ended {
		a.log.Error(hang.String())
	}
}

// ReloadPooler has PgBouncer read its files again, such as those of a certificate that was renewed. It does not wait; a reload
// that fails is tried again.
func (a *Agent) ReloadPooler() {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), reloadTime)
		defer cancel()
		if err := a.pooler.Sync(ctx, a.ledger.PoolerState); err != nil {
			a.log.Warn("PgBouncer could not be told of a renewed certificate yet", zap.Error(err))
			a.pooler.SyncSoon(a.ledger.PoolerState)
		}
	}()
}

// reloadTime bounds the wait for a reload that nobody waits for.
const reloadTime = time.Minute

// prune removes old operations from the ledger, now and every day.
func (a *Agent) prune(ctx context.Context) {
	loop.Run(ctx, a.log, nil, "the ledger could not be pruned", func(ctx context.Context) (time.Duration, error) {
		n, err := a.ledger.Prune(ctx)
		if n > 0 {
			a.log.Info("the ledger was pruned", zap.Int64("operations", n))
		}
		return prunePause, err
	})
}

// sweepBackups removes the logins and copies that backups have left, now and again and again: a customer's transaction may be in
// the way of some for long.
func (a *Agent) sweepBackups(ctx context.Context) {
	const failed = "what backups have left is not removed"
	loop.Run(ctx, a.log, a.copies.SweepDue(), failed, func(ctx context.Context) (time.Duration, error) {
		if err := errors.Join(a.copies.Sweep(ctx), a.uploads.Sweep(ctx)); err != nil {
			return sweepAgain, err
		}
		return sweepPause, nil
	})
}

// sweepBlobs removes what backups have left where they are kept, now and every day: it reads all names.
func (a *Agent) sweepBlobs(ctx context.Context) {
	loop.Run(ctx, a.log, nil, "what backups have left where they are kept is not removed",
		func(ctx context.Context) (time.Duration, error) {
			passed, err := a.files.Passing().SweepBlobs(ctx, time.Now())
			n, failed := a.files.SweepBlobs(ctx, time.Now())
			if n += passed; n > 0 {
				a.log.Info("what backups had left was removed", zap.Int("blobs", n))
			}
			return prunePause, errors.Join(err, failed)
		})
}

// sweepExtensions does the same for changes of extensions.
func (a *Agent) sweepExtensions(ctx context.Context) {
	loop.Run(ctx, a.log, nil, "what changes of extensions have left is not removed",
		func(ctx context.Context) (time.Duration, error) {
			if err := a.changer.Sweep(ctx); err != nil {
				return sweepAgain, err
			}
			return sweepPause, nil
		})
}
