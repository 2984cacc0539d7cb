package controlplane

import (
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Backups starts, lists, serves and deletes backups (spec, section "Backups"); backup_open.go serves them.
type Backups struct {
	*base
	downloads *gate
}

// List returns the backups of a database, newest first, and the position of the last one where there are more.
func (b *Backups) List(ctx context.Context, r Reached, p ports.Page) (list []backup.Backup, next *ports.Position, err error) {
	if err := r.Permit(account.See); err != nil {
		return nil, nil, err
	}
	err = b.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		list, err = tx.Backups().List(ctx, r.record.ID, onePastEnd(p))
		return err
	})
	list, next = cut(list, p, func(v backup.Backup) ports.Position {
		return ports.Position{At: v.CreatedAt, ID: string(v.Filename)}
	})
	return list, next, err
}

// Start queues a backup. FORBIDDEN: a viewer. DATABASE_STATE_CONFLICT: the status or an open operation forbids it.
// BACKUP_STORAGE_FULL: the server has no room. AGENT_ERROR: the server cannot be reached; nothing is queued.
func (b *Backups) Start(ctx context.Context, r Reached) (operation.Operation, error) {
	if err := r.Permit(account.ManageBackups); err != nil {
		return operation.Operation{}, err
	}
	if _, err := r.record.Status.Decide(database.Backup); err != nil {
		return operation.Operation{}, err
	}
	release, err := b.mayCall(ctx, r)
	if err != nil {
		return operation.Operation{}, err
	}
	defer release()
	if err := b.checkRoom(ctx, r.record); err != nil {
		return operation.Operation{}, err
	}
	o, err := b.queueBackup(ctx, r.record, r.caller.origin(), backup.Manual, nil)
	if err != nil {
		return operation.Operation{}, notFound(err, errDatabaseNotFound())
	}
	b.worker.Reserved(KindBackup)
	return o, nil
}

func (b *Backups) checkRoom(ctx context.Context, r database.Record) error {
	agent, err := b.agentOf(ctx, r.ServerID)
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

// queueBackup commits the intent, and whatever else belongs to the same step, in one transaction.
func (b *base) queueBackup(
	ctx context.Context, r database.Record, by work.Origin, t backup.Trigger,
	also func(ctx context.Context, tx ports.Tx, locked database.Record) error,
) (o operation.Operation, err error) {
	err = b.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		record, err := tx.Databases().Lock(ctx, r.ID)
		if err != nil {
			return err
		}
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
		o = b.worker.Queued(record, KindBackup, operation.Encode(input), by)
		if err := tx.Operations().Add(ctx, o); err != nil {
			return err
		}
		details := audit.Details{"operationId": string(o.ID), "filename": input.Filename, "trigger": input.Trigger}
		return b.audit(ctx, tx, record, by.Actor, audit.BackupRequested, details)
	})
	return o, err
}

func (b *base) backupInput(
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
	return operation.BackupInput{
		Filename: string(backup.FreeFilename(b.Clock.Now(), taken)), Trigger: string(t),
		Verify: t == backup.Deletion || owner.Quotas().VerifyBackups && !slices.Contains(b.UnverifiedPlans, owner.Plan),
	}, nil
}

// Delete removes a backup file for good. FORBIDDEN: a viewer. BACKUP_NOT_FOUND. BACKUP_CONFLICT: a deletion backup,
// or one that an open operation uses.
// AGENT_ERROR, AGENT_ROUTE_UNAVAILABLE: the file is no longer listed, and is removed as soon as the server allows.
func (b *Backups) Delete(ctx context.Context, r Reached, filename backup.Filename) error {
	if err := r.Permit(account.ManageBackups); err != nil {
		return err
	}
	release, err := b.mayCall(ctx, r)
	if err != nil {
		return err
	}
	defer release()
	var doomed backup.Backup
	err = b.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if _, err := tx.Databases().Lock(ctx, r.record.ID); err != nil {
			return err
		}
		if doomed, err = tx.Backups().MarkDeleting(ctx, r.record.ID, filename, b.Clock.Now()); err != nil {
			return err
		}
		if err := doomed.Deletable(); err != nil {
			return err
		}
		return unused(ctx, tx, doomed)
	})
	if err != nil {
		return notFound(err, errBackupNotFound())
	}
	b.Crash(CrashBackupDoomed)
	if err := b.erase(ctx, r.record, doomed, r.caller.Actor(), audit.BackupDeleted); err != nil {
		return fileError(err, "the database server cannot delete the backup now; it is no longer listed and will be deleted")
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
	wish := operation.Use{DatabaseID: doomed.DatabaseID, Backup: string(doomed.Filename), Exclusive: true}
	return wish.Admits(open, fault.BackupConflict)
}

// erase removes the file, then its record. Both can be done again.
func (b *base) erase(
	ctx context.Context, r database.Record, doomed backup.Backup, by audit.Actor, what audit.Action,
) error {
	agent, err := b.agentOf(ctx, r.ServerID)
	if err != nil {
		return err
	}
	gone := command.DeleteBackup{DatabaseID: r.ID, Filename: doomed.Filename}
	if _, err := ports.Ask(ctx, agent, gone); err != nil {
		return err
	}
	b.Crash(CrashBackupErased)
	return b.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Backups().Remove(ctx, r.ID, doomed.Filename); err != nil {
			return err
		}
		return b.audit(ctx, tx, r, by, what, audit.Details{"filename": string(doomed.Filename)})
	})
}

func errBackupNotFound() error { return fault.New(fault.BackupNotFound, "no such backup") }

// fileError is the caller's error when an agent does not serve or delete a file.
func fileError(err error, message string) error {
	switch {
	case command.RefusedFor(err, command.ReasonNotFound):
		return errBackupNotFound()
	case command.RefusedFor(err, command.ReasonNoRoute):
		return fault.Wrap(err, fault.AgentRouteUnavailable, "unavailable until the agent of the database server is updated")
	default:
		return fault.Wrap(err, fault.AgentError, "%s", message)
	}
}
