package artifact

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// RemoveFiles removes every file that there is of a database: its backups, with what was written and not committed, and uploads.
// Nobody must be making any of them.
func (b *Backuper) RemoveFiles(ctx context.Context, db id.DatabaseID) error {
	all, err := b.store.Uploads()
	for _, u := range all {
		if u.Database == db {
			_, failed := b.DropUpload(ctx, command.DropUpload{DatabaseID: db, UploadID: u.ID})
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, b.store.DeleteAll(db))
}
