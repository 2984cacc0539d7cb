package backups

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

func (b *Backups) registerRounds() {
	rounds.Register(b.base.Rounds, rounds.Task{Name: "daily backups", Every: base.RoundEvery, Work: brake.Schedules, Do: b.schedule})
	rounds.RegisterServers(b.base.Rounds, rounds.ServerTask[ports.DoomedBackup]{
		Name: "deleted and expired backups", Every: base.RoundEvery, Find: b.doomed, Do: b.eraseDoomed,
		Of:  func(d ports.DoomedBackup) (id.ServerID, id.AccountID) { return d.ServerID, d.AccountID },
		Key: func(d ports.DoomedBackup) string { return string(d.Filename) },
	})
	rounds.RegisterServers(b.base.Rounds, rounds.ServerTask[database.Record]{
		Name: "backups read again", Every: readEvery, Find: b.unread, Do: b.reread,
		Of: func(r database.Record) (id.ServerID, id.AccountID) { return r.ServerID, "" }, // one at a time
	})
}

// SetSchedule chooses whether the service makes daily backups of a database. VALIDATION_ERROR on "scheduledBackup".
// FORBIDDEN: a viewer.
func (b *Backups) SetSchedule(ctx context.Context, r access.Reached, s database.Schedule) error {
	if _, err := database.ParseSchedule(string(s)); err != nil {
		return err
	}
	if err := r.Permit(account.ManageBackups); err != nil {
		return err
	}
	return r.Update(ctx, b.base, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		return b.base.SetSchedule(ctx, tx, locked, s, r.Caller().Actor(), audit.BackupsScheduled)
	})
}

// schedule queues the daily backups that are due. Several missed days are made up for by one backup.
func (b *Backups) schedule(ctx context.Context, now time.Time) error {
	list, err := b.base.Due(ctx, ports.DueBackup, now, base.RoundBatch)
	for _, r := range list {
		_, one := b.queueBackup(ctx, r.ID, work.Origin{Actor: audit.System}, backup.Scheduled, nil, b.reschedule(now))
		if one != nil && !base.IsSettled(one) {
			err = errors.Join(err, one)
		}
	}
	return err
}

// reschedule moves the database's next backup to the next slot. Another process may have done so in the meantime.
func (b *Backups) reschedule(now time.Time) base.LockedUpdate {
	return func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if locked.NextBackupAt == nil || now.Before(*locked.NextBackupAt) {
			return base.ErrSettled
		}
		locked.NextBackupAt = backup.Next(locked.ID, locked.Schedule, now)
		return tx.Databases().Save(ctx, locked)
	}
}

// doomed lists the backups that have expired or were deleted.
func (b *Backups) doomed(ctx context.Context, now time.Time) ([]ports.DoomedBackup, error) {
	return ports.Read(ctx, b.base.Store, func(ctx context.Context, tx ports.Tx) ([]ports.DoomedBackup, error) {
		return tx.Backups().Doomed(ctx, now, base.RoundMost)
	})
}

// eraseDoomed removes a file and its record. One that is in use is left for later.
func (b *Backups) eraseDoomed(ctx context.Context, now time.Time, d ports.DoomedBackup) error {
	what := audit.BackupDeleted
	if d.DeletingAt == nil || d.Expired(*d.DeletingAt) {
		what = audit.BackupExpired
	}
	var record database.Record
	err := b.base.UpdateDatabase(ctx, d.DatabaseID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		record = locked
		if d.DeletingAt == nil {
			// Its customer may have deleted the one that outlasted it.
			if current, err := tx.Backups().Get(ctx, d.DatabaseID, d.Filename); err != nil {
				return err
			} else if !current.Expired(now) {
				return base.ErrSettled
			}
		}
		switch err := unused(ctx, tx, d.Backup); {
		case fault.Has(err, fault.BackupConflict):
			return base.ErrSettled
		case err != nil:
			return err
		}
		_, err := tx.Backups().MarkDeleting(ctx, d.DatabaseID, d.Filename, now)
		return err
	})
	if err == nil {
		err = b.erase(ctx, record, d.Backup, audit.System, what)
	}
	return b.base.UnlessSettled(ctx, "backup.not_erased", d.DatabaseID, err)
}
