package backup

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/core/fault"
)

// A dump that others' statements are in the way of is made again, so many times, after a pause that grows.
const (
	tries      = 10
	firstPause = 50 * time.Millisecond
	mostPause  = 2 * time.Second
)

// undisturbed makes the files of a set. BACKUP_CONFLICT: each try was disturbed.
func (x *Backups) undisturbed(
	ctx context.Context, d dumping, req Request, tell jobs.Tell,
) (made spool, err error) {
	run := d.run
	defer func() {
		if dropped := run.DropLogin(ctx); dropped != nil {
			if err == nil {
				dropped = errors.Join(dropped, made.draft.End(context.WithoutCancel(ctx)))
			}
			err = errors.Join(err, dropped)
		}
	}()
	for try := 1; ; try++ {
		made, err = x.inSnapshot(ctx, d, req, try, tell)
		if err == nil {
			return made, nil
		}
		err = run.Explained(overBound(noDatabase(err)))
		var disturbed *pgdump.Disturbed
		if ctx.Err() != nil || !errors.As(err, &disturbed) {
			return made, err
		}
		x.Log.Info("a dump was disturbed", zap.String("operation", string(req.OperationID)),
			zap.String("database", string(req.DatabaseID)), zap.Int("try", try), zap.Error(err))
		if try == tries {
			return made, fault.Wrap(err, fault.BackupConflict, "the database was changed while it was dumped, in each of %d tries: "+
				"%s; repeat it when less of this is done", tries, disturbed.Text())
		}
		if err := loop.Wait(ctx, pauseAfter(try)); err != nil {
			return made, err
		}
	}
}

func pauseAfter(try int) time.Duration {
	pause := min(firstPause<<(try-1), mostPause)
	return pause/2 + rand.N(pause/2) //nolint:gosec // a pause is no secret
}
