package storage

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// Replaced stores the size of a locked database whose content was replaced, with what follows from it. The settings get a new
// generation in any case: they are to be set in what is now the database.
func Replaced(ctx context.Context, p *plane.Plane, tx ports.Tx, locked database.Record, bytes int64) error {
	locked, err := withQuota(ctx, tx, locked)
	if err != nil {
		return err
	}
	now := p.Clock.Now()
	locked.SizeBytes, locked.SizedAt = bytes, &now
	to := locked.Storage().Measured(bytes, locked.StorageQuota())
	if to.Status != locked.StorageStatus {
		return move(ctx, p, tx, locked, to, audit.System, nil)
	}
	locked.SetStorage(to)
	return settings.Save(ctx, tx, locked)
}
