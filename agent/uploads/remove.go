package uploads

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// RemoveAll removes the uploads of a database. Nobody must be making any.
func (x *Uploads) RemoveAll(ctx context.Context, db id.DatabaseID) error {
	all, err := x.files.Uploads()
	for _, u := range all {
		if u.Database == db {
			_, failed := x.Drop(ctx, command.DropUpload{DatabaseID: db, UploadID: u.ID})
			err = errors.Join(err, failed)
		}
	}
	return err
}
