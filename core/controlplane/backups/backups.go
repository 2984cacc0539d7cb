// Package backups makes, serves and deletes the backups of databases.
package backups

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Backups starts, lists, serves and deletes backups (spec, section "Backups"); backup_open.go serves them.
type Backups struct {
	base      *base.Base
	downloads *base.Limiter
}

// New makes the use cases, and registers their kind and periodic tasks.
func New(p *base.Base) *Backups {
	b := &Backups{base: p, downloads: newDownloads(p.Config)}
	b.register()
	b.registerRounds()
	return b
}

// List returns the backups of a database, newest first, and the position of the last one where there are more. What would have
// expired, but for that no other backup outlasts it, is shown without an expiry.
func (b *Backups) List(
	ctx context.Context, r access.Reached, p ports.Page,
) ([]backup.Backup, *ports.Position, error) {
	if err := r.Permit(account.See); err != nil {
		return nil, nil, err
	}
	now := b.base.Clock.Now()
	return base.List(ctx, b.base.Store, p,
		func(v backup.Backup) ports.Position { return ports.Position{At: v.CreatedAt, ID: string(v.Filename)} },
		func(ctx context.Context, tx ports.Tx, p ports.Page) ([]backup.Backup, error) {
			list, err := tx.Backups().List(ctx, r.Record().ID, p)
			for i, one := range list {
				list[i].ExpiresAt = one.Ends(now)
			}
			return list, err
		})
}

// Start queues a backup. FORBIDDEN: a viewer. DATABASE_STATE_CONFLICT: the status or an open operation forbids it.
// BACKUP_STORAGE_FULL: the account's quota for the backups of the database is used up, or the server has no room. AGENT_ERROR:
// the server cannot be reached; nothing is queued.
func (b *Backups) Start(ctx context.Context, r access.Reached) (operation.Operation, error) {
	if err := r.Permit(account.ManageBackups); err != nil {
		return operation.Operation{}, err
	}
	if _, err := r.Record().Status.Decide(database.Backup); err != nil {
		return operation.Operation{}, err
	}
	release, err := r.MayCall(ctx, b.base)
	if err != nil {
		return operation.Operation{}, err
	}
	defer release()
	if err := b.checkRoom(ctx, r.Record()); err != nil {
		return operation.Operation{}, err
	}
	o, err := b.queueBackup(ctx, r.Record().ID, r.Caller().Origin(), backup.Manual, nil,
		func(ctx context.Context, tx ports.Tx, _ database.Record) error { return r.StillHolds(ctx, tx) })
	if err != nil {
		return operation.Operation{}, base.NotFound(err, base.ErrDatabaseNotFound())
	}
	b.base.Work.Reserved(Kind)
	return o, nil
}

// Order queues a backup of a database on the order of the people who run the service. VALIDATION_ERROR on "reason".
// DATABASE_NOT_FOUND. DATABASE_STATE_CONFLICT and BACKUP_STORAGE_FULL as of Start.
func (b *Backups) Order(ctx context.Context, db id.DatabaseID, by operation.Order) (o operation.Operation, err error) {
	if err := by.Check(); err != nil {
		return o, err
	}
	o, err = b.queueBackup(ctx, db, work.Origin{Actor: audit.Operator}, backup.Manual, by.Ordered().Details(), nil)
	if err != nil {
		return operation.Operation{}, base.NotFound(err, base.ErrDatabaseNotFound())
	}
	b.base.Work.Reserved(Kind)
	return o, nil
}

func (b *Backups) checkRoom(ctx context.Context, r database.Record) error {
	agent, err := b.base.AgentOf(ctx, r.ServerID)
	if err != nil {
		return err
	}
	switch _, err := ports.Ask(ctx, agent, command.RoomForBackup{DatabaseID: r.ID}); {
	case err == nil:
		return nil
	case command.RefusedFor(err, command.ReasonStorageFull):
		return fault.Wrap(err, fault.BackupStorageFull, "the database server has no room for another backup")
	default:
		return fault.Wrap(err, fault.AgentError, "the database server cannot start a backup now")
	}
}

// queueBackup commits the intent, and whatever else belongs to the same step, in one transaction. why is what the activity log
// says beside the rest.
func (b *Backups) queueBackup(
	ctx context.Context, db id.DatabaseID, by work.Origin, t backup.Trigger, why audit.Details,
	also func(ctx context.Context, tx ports.Tx, locked database.Record) error,
) (o operation.Operation, err error) {
	err = b.base.UpdateDatabase(ctx, db, func(ctx context.Context, tx ports.Tx, record database.Record) error {
		if also != nil {
			if err := also(ctx, tx, record); err != nil {
				return err
			}
		}
		if _, err := record.Status.Decide(database.Backup); err != nil {
			return err
		}
		input, err := b.backupInput(ctx, tx, record, t)
		if err != nil {
			return err
		}
		o = b.base.Work.Queued(record, Kind, operation.Encode(input), by)
		if err := tx.Operations().Add(ctx, o); err != nil {
			return err
		}
		details := audit.Details{"operationId": string(o.ID), "filename": input.Filename, "trigger": input.Trigger}
		maps.Copy(details, why)
		return b.base.Audit(ctx, tx, record, by.Actor, audit.BackupRequested, details)
	})
	return o, err
}

// backupInput decides over a backup that is to begin. A scheduled one begins also where the quota leaves nothing for it, so that
// its owner hears that it failed.
func (b *Backups) backupInput(
	ctx context.Context, tx ports.Tx, r database.Record, t backup.Trigger,
) (operation.BackupInput, error) {
	taken, err := tx.Backups().Names(ctx, r.ID)
	if err != nil {
		return operation.BackupInput{}, err
	}
	owner, err := tx.Accounts().Get(ctx, r.AccountID)
	if err != nil {
		return operation.BackupInput{}, err
	}
	left, err := leftOf(ctx, tx, r, owner, t)
	full := fault.Has(err, fault.BackupStorageFull)
	if err != nil && (!full || t != backup.Scheduled) {
		return operation.BackupInput{}, err
	}
	return operation.BackupInput{
		Filename: string(backup.FreeFilename(b.base.Clock.Now(), taken)), Trigger: string(t),
		Verify:   t == backup.Deletion || owner.Quotas().VerifyBackups && !slices.Contains(b.base.UnverifiedPlans, owner.Plan),
		MaxBytes: left, NoRoom: full,
	}, nil
}

// leftOf is what the account's quota leaves for a backup; 0 for that of a deletion, which must not fail for it.
func leftOf(
	ctx context.Context, tx ports.Tx, r database.Record, owner account.Account, t backup.Trigger,
) (int64, error) {
	if t == backup.Deletion {
		return 0, nil
	}
	used, err := tx.Storage().BackupBytes(ctx, r.ID)
	if err != nil {
		return 0, err
	}
	return backup.Left(used, owner.Quotas().BackupBytes)
}

// Delete removes a backup file for good. FORBIDDEN: a viewer. BACKUP_NOT_FOUND. BACKUP_CONFLICT: a deletion backup,
// or one that an open operation uses.
// AGENT_ERROR, AGENT_ROUTE_UNAVAILABLE: the file is no longer listed, and is removed as soon as the server allows.
func (b *Backups) Delete(ctx context.Context, r access.Reached, filename backup.Filename) error {
	if err := r.PermitRecent(b.base.Clock, account.ManageBackups); err != nil {
		return err
	}
	release, err := r.MayCall(ctx, b.base)
	if err != nil {
		return err
	}
	defer release()
	var doomed backup.Backup
	err = r.Update(ctx, b.base, func(ctx context.Context, tx ports.Tx, _ database.Record) (err error) {
		if doomed, err = tx.Backups().MarkDeleting(ctx, r.Record().ID, filename, b.base.Clock.Now()); err != nil {
			return err
		}
		if err := doomed.Deletable(); err != nil {
			return err
		}
		return unused(ctx, tx, doomed)
	})
	if err != nil {
		return base.NotFound(err, base.ErrBackupNotFound())
	}
	b.base.Crash(CrashDoomed)
	if err := b.erase(ctx, r.Record(), doomed, r.Caller().Actor(), audit.BackupDeleted); err != nil {
		return base.FileError(err, "the database server cannot delete the backup now; it is no longer listed and will be deleted")
	}
	return nil
}

// unused returns BACKUP_CONFLICT while an open operation uses a backup that is to be deleted. The caller holds the database's
// lock.
func unused(ctx context.Context, tx ports.Tx, doomed backup.Backup) error {
	open, err := tx.Uses().Of(ctx, doomed.DatabaseID)
	if err != nil {
		return err
	}
	deletion := operation.Use{DatabaseID: doomed.DatabaseID, Backup: string(doomed.Filename), Exclusive: true}
	return deletion.Admits(open, fault.BackupConflict)
}

// erase removes the file, then its record. Both can be done again. brake.Held where the metadata are behind.
func (b *Backups) erase(
	ctx context.Context, r database.Record, doomed backup.Backup, by audit.Actor, what audit.Action,
) error {
	if err := b.base.EraseBackup(ctx, cmp.Or(doomed.KeptBy, r.ServerID), r.ID, doomed.Filename); err != nil {
		return err
	}
	b.base.Crash(CrashErased)
	return b.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Backups().Remove(ctx, r.ID, doomed.Filename); err != nil {
			return err
		}
		return b.base.Audit(ctx, tx, r, by, what, audit.Details{"filename": string(doomed.Filename)})
	})
}
