package agent

import (
	"context"
	"io"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// Room implements server.Files.
func (g gated) Room(ctx context.Context, db id.DatabaseID) error {
	if err := g.pass(); err != nil {
		return err
	}
	return g.backups.Room(ctx, db)
}

// Delete implements server.Files.
func (g gated) Delete(ctx context.Context, db id.DatabaseID, name backup.Filename) error {
	if err := g.pass(); err != nil {
		return err
	}
	return g.backups.Delete(ctx, db, name)
}

// Open implements server.Files.
func (g gated) Open(ctx context.Context, db id.DatabaseID, name backup.Filename) (io.ReadCloser, int64, error) {
	if err := g.pass(); err != nil {
		return nil, 0, err
	}
	return g.backups.Open(ctx, db, name)
}
