package adoptions

import (
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// ForgetBackups removes the records of the backups of a database whose files its server does not have: as where they were deleted
// after the moment that the metadata went back to. Where a storage has lost them, they are not to be forgotten before it is known
// that they do not come back. Asked again it removes nothing.
//
// VALIDATION_ERROR on "reason". DATABASE_NOT_FOUND. BACKUP_NOT_FOUND: there is no record of such a backup. BACKUP_CONFLICT: the
// server has the one that is meant, or an open operation uses it. AGENT_ERROR: the server does not say which files it has.
func (a *Adoptions) ForgetBackups(ctx context.Context, q AskedFiles) (gone []backup.Backup, err error) {
	if err := q.Order.Check(); err != nil {
		return nil, err
	}
	r, err := a.base.Record(ctx, q.Database)
	if err != nil {
		return nil, base.NotFound(err, base.ErrDatabaseNotFound())
	}
	agent, err := a.base.AgentOf(ctx, r.ServerID)
	if err != nil {
		return nil, err
	}
	list, err := ports.Read(ctx, a.base.Store, func(ctx context.Context, tx ports.Tx) ([]backup.Backup, error) {
		return tx.Backups().List(ctx, r.ID, ports.Page{})
	})
	if err != nil {
		return nil, err
	}
	files, err := base.Files(ctx, agent) // after the list: a backup has a record once it has a file
	if err != nil {
		return nil, fault.Wrap(err, fault.AgentError, "the server does not say which files it has: %s", err)
	}
	there := doctor.Unrecorded(r.ID, files, nil)
	if q.Filename != "" {
		list = slices.DeleteFunc(list, func(b backup.Backup) bool { return b.Filename != q.Filename })
		switch {
		case len(list) == 0:
			return nil, base.ErrBackupNotFound()
		case slices.Contains(there, q.Filename):
			return nil, fault.New(fault.BackupConflict, "the server has the file of %s: its owner deletes it", q.Filename)
		}
	}
	for _, b := range list {
		if slices.Contains(there, b.Filename) {
			continue
		}
		if err := a.forgetFile(ctx, b, q.Order); err != nil {
			return gone, err
		}
		gone = append(gone, b)
	}
	return gone, nil
}

func (a *Adoptions) forgetFile(ctx context.Context, b backup.Backup, by operation.Order) error {
	return a.base.UpdateStored(ctx, b.DatabaseID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		open, err := tx.Uses().Of(ctx, locked.ID)
		if err != nil {
			return err
		}
		use := operation.Use{DatabaseID: locked.ID, Backup: string(b.Filename), Exclusive: true}
		if err := use.Admits(open, fault.BackupConflict); err != nil {
			return err
		}
		if err := tx.Backups().Remove(ctx, locked.ID, b.Filename); err != nil {
			return err
		}
		return a.base.Audit(ctx, tx, locked, audit.Operator, audit.BackupForgotten, audit.Details{
			"filename": string(b.Filename), "operator": by.By, "reason": by.Reason,
		})
	})
}
