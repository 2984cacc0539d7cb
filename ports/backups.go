package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// Backups keeps the records of backup files that exist on a server.
type Backups interface {
	// Add stores a record, once for each operation: a second Add by the same operation changes nothing.
	Add(ctx context.Context, b backup.Backup) error
	// Get returns a backup that is not being deleted; ErrNoRow when there is none.
	Get(ctx context.Context, db id.DatabaseID, filename backup.Filename) (backup.Backup, error)
	// List returns the backups of a database that are not being deleted, newest first.
	List(ctx context.Context, db id.DatabaseID, p Page) ([]backup.Backup, error)
	// Names returns every file name that the database uses or has reserved for an open operation, including those of deleted
	// backups whose files may still exist.
	Names(ctx context.Context, db id.DatabaseID) ([]backup.Filename, error)
	// MarkDeleting records the intent to delete the file, and returns the record; a record that is already marked keeps its time.
	// ErrNoRow when there is no such backup.
	MarkDeleting(ctx context.Context, db id.DatabaseID, filename backup.Filename, now time.Time) (backup.Backup, error)
	// Save writes the expiry of a backup, its verification, what reading it again has found, and which server keeps it; ErrNoRow
	// when there is none of its operation that is not being deleted.
	Save(ctx context.Context, b backup.Backup) error
	// Remove deletes the record of a file that is gone.
	Remove(ctx context.Context, db id.DatabaseID, filename backup.Filename) error
	// Doomed lists up to limit backups whose files are to be deleted: expired ones, unless their database is deleted or no other
	// backup outlasts them, and marked ones that are not yet removed.
	Doomed(ctx context.Context, now time.Time, limit int) ([]DoomedBackup, error)
}

// DoomedBackup is a backup whose file is to be deleted, the server that the file is on, and the account of its database.
type DoomedBackup struct {
	backup.Backup
	ServerID  id.ServerID  `db:"server_id"`
	AccountID id.AccountID `db:"account_id"`
}
