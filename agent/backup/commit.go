package backup

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

const (
	// defaultPatience is Config.Patience where nothing else is set.
	defaultPatience = 15 * time.Minute
	// The pause before a set is moved again grows between these.
	firstStorePause, mostStorePause = time.Second, 15 * time.Second
)

const stageStoring = "storing"

// commit moves a set to where backups are kept. While that is away, the set waits in the spool, without a slot:
// BACKUP_STORAGE_UNAVAILABLE once it has waited for Config.Patience.
func (x *Backups) commit(ctx context.Context, draft *store.Draft, req Request, tell jobs.Tell) error {
	percent := 99
	if req.Verify {
		percent = copies.DumpShare
	}
	tell(stageStoring, percent, command.Bytes{})
	once := func() error {
		return draft.Commit(ctx, func(step string) { x.Crash("backup.after-" + step + "-moved") })
	}
	err := once()
	if away(ctx, err) {
		err = req.aside(ctx, func(ctx context.Context) error { return x.keepTrying(ctx, req, once, err) })
	}
	if err == nil {
		x.Crash("backup.after-commit")
	}
	return err
}

// away reports whether what was not stored may be stored later.
func away(ctx context.Context, err error) bool { return ctx.Err() == nil && jobs.IsAway(err) }

func (x *Backups) keepTrying(ctx context.Context, req Request, once func() error, err error) error {
	began := time.Now()
	for pause := firstStorePause; away(ctx, err); pause = min(2*pause, mostStorePause) {
		x.Log.Warn("a backup waits for where it is to be stored", zap.String("operationId", string(req.OperationID)),
			zap.String("databaseId", string(req.DatabaseID)), zap.Duration("for", time.Since(began)), zap.Error(err))
		if time.Since(began) > cmp.Or(x.Patience, defaultPatience) {
			return fault.New(fault.BackupStorageUnavailable,
				"the backup could not be stored: where backups are kept does not answer")
		}
		if err := loop.Wait(ctx, pause); err != nil {
			return err
		}
		err = once()
	}
	return err
}

// aside waits for something that needs no slot.
func (r Request) aside(ctx context.Context, wait func(context.Context) error) error {
	if r.Aside == nil {
		return wait(ctx)
	}
	return r.Aside(ctx, wait)
}
