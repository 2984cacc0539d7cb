package backup

import (
	"context"
	"errors"
	"io"

	"github.com/pgherd/pgherd/core/command"
)

// HasRoom refuses a database whose dump had no room even if no other were made.
func (x *Backups) HasRoom(ctx context.Context, q command.RoomForBackup) (none command.None, err error) {
	size, err := x.Size(ctx, q.DatabaseID)
	if err != nil {
		return none, err
	}
	return none, x.Room.HasRoom(ctx, size)
}

// Open opens the file of a backup.
func (x *Backups) Open(ctx context.Context, q command.OpenBackup) (io.ReadCloser, int64, error) {
	return x.Files.Open(ctx, q.DatabaseID, q.Filename)
}

// OpenRest opens what follows on a number of bytes.
func (x *Backups) OpenRest(ctx context.Context, q command.OpenRest) (io.ReadCloser, int64, error) {
	file, size, err := x.Files.Open(ctx, q.DatabaseID, q.Filename)
	if err != nil {
		return nil, 0, err
	}
	left := max(0, size-q.Offset)
	if _, err := io.CopyN(io.Discard, file, size-left); err != nil { // what is sealed is opened from its beginning
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, left, nil
}

// OpenManifest opens the manifest of a backup.
func (x *Backups) OpenManifest(ctx context.Context, q command.OpenManifest) (io.ReadCloser, int64, error) {
	return x.Files.OpenManifest(ctx, q.DatabaseID, q.Filename)
}
