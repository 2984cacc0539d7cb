package storage

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// Restored notes that a restore has put a database of this size in the place of a locked one, and decides what follows for the
// quota. All its settings are to be set there, so they get a new generation.
func (s *Storage) Restored(ctx context.Context, tx ports.Tx, locked database.Record, bytes int64) error {
	locked, err := withQuota(ctx, tx, locked)
	if err != nil {
		return err
	}
	now := s.base.Clock.Now()
	locked.SizeBytes, locked.SizedAt = bytes, &now
	to := locked.Storage().Restored(bytes, locked.StorageQuota())
	if to.Status == locked.StorageStatus {
		locked.SetStorage(to)
		return settings.Save(ctx, tx, locked)
	}
	return move(ctx, s.base, tx, locked, to, audit.System, nil)
}
