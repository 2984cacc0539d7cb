package controlplane

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// eraseBackups removes the files of backups that have expired or were deleted.
func (k *Keeper) eraseBackups(ctx context.Context, start func(work func())) error {
	doomed, err := k.doomedBackups(ctx)
	for server, list := range byServer(doomed, func(b ports.DoomedBackup) id.ServerID { return b.ServerID }) {
		k.erasing.work(server, start, func() { k.eraseEach(ctx, list) })
	}
	return err
}

func (k *Keeper) doomedBackups(ctx context.Context) (list []ports.DoomedBackup, err error) {
	err = k.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		list, err = tx.Backups().Doomed(ctx, k.Clock.Now(), keepMost)
		return err
	})
	return list, err
}

// eraseEach removes files of one server, until it does not answer. A database of which one file cannot be removed waits for the
// next round with the others.
func (k *Keeper) eraseEach(ctx context.Context, list []ports.DoomedBackup) {
	stuck := map[id.DatabaseID]bool{}
	for _, b := range list {
		if stuck[b.DatabaseID] {
			continue
		}
		err := k.eraseInTime(ctx, b)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !isSettled(err) {
			stuck[b.DatabaseID] = true
			k.journal(ctx, "backup.not_erased", b.DatabaseID, err)
		}
		if noAnswer(err) {
			return
		}
	}
}

func (k *Keeper) eraseInTime(ctx context.Context, b ports.DoomedBackup) error {
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	what := audit.BackupDeleted
	if b.DeletingAt == nil || b.Expired(*b.DeletingAt) {
		what = audit.BackupExpired
	}
	var record database.Record
	err := k.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if record, err = tx.Databases().Lock(ctx, b.DatabaseID); err != nil {
			return err
		}
		_, err = tx.Backups().MarkDeleting(ctx, b.DatabaseID, b.Filename, k.Clock.Now())
		return err
	})
	if err != nil {
		return err
	}
	return k.erase(ctx, record, b.Backup, audit.System, what)
}
