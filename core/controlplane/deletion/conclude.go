package deletion

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// conclude makes the operation final, and in the same transaction stores the backup, the tombstone with the access snapshot and
// the status, and withdraws the open invitations.
func (t turn) conclude(ctx context.Context) (work.Next, error) {
	now, err := t.d.base.Brake.Now(ctx, brake.Schedules) // by this time the purge goes
	if err != nil {
		return work.Next{}, err
	}
	tomb := deletion.Tombstone{
		DatabaseID: t.Record.ID, OperationID: t.Of.ID, StatusBefore: t.Input.From,
		DeletedAt: now, PurgeAfter: now.Add(t.d.base.RecoveryWindow),
	}
	made := t.Input.Backup(t.Record.ID, t.Of.ID, t.Of.CreatedAt)
	if made != nil {
		tomb.Filename, tomb.ChecksumSHA256 = made.Filename, made.ChecksumSHA256
	}
	return t.Finish(ctx, work.Ending{
		On: operation.Succeed, DatabaseName: t.Record.Name,
		Result: operation.Encode(deletion.Result{PurgeAfter: tomb.PurgeAfter, DeletionBackup: deletion.CopyOf(made)}),
		Also: func(ctx context.Context, tx ports.Tx) error {
			if made != nil {
				if err := tx.Backups().Add(ctx, *made); err != nil {
					return err
				}
			}
			return t.bury(ctx, tx, tomb)
		},
	})
}

func (t turn) bury(ctx context.Context, tx ports.Tx, tomb deletion.Tombstone) error {
	locked, err := tx.Databases().Lock(ctx, t.Record.ID)
	if err != nil {
		return err
	}
	if err := t.d.withdraw(ctx, tx, t.Of.Actor, locked); err != nil {
		return err
	}
	if _, err := tx.Deletions().Add(ctx, tomb); err != nil {
		return err
	}
	err = t.d.save(ctx, tx, locked, Deleted, func(r *database.Record) (err error) {
		r.Status, err = isolated(r.Status)
		return err
	})
	if err != nil {
		return err
	}
	return t.d.base.Audit(ctx, tx, locked, t.Of.Actor, audit.DatabaseDeleted, audit.Details{
		"operationId": string(t.Of.ID), "name": locked.Name, "filename": string(tomb.Filename),
		"purgeAfter": tomb.PurgeAfter.UTC().Format(time.RFC3339),
	})
}

// isolated is the status of a database that nobody can enter any more; it may be in error because it could not be opened again.
func isolated(s database.Status) (database.Status, error) {
	if s == database.Error {
		cell, err := s.Decide(database.Delete)
		if err != nil {
			return s, err
		}
		s = cell.Next
	}
	cell, err := s.Decide(database.Isolate)
	return cell.Next, err
}
