package driver

import (
	"context"
	"os"
	"time"

	"github.com/pgherd/pgherd/acceptance/backupfiles"
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/ports"
)

// rot does it on fakes.
func (s *service) rot(of spec.Created, file backup.Filename) error {
	s.agent.Rot(of.ID, file)
	return s.store.Update(context.Background(), func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Databases().Lock(ctx, of.ID)
		if err != nil {
			return err
		}
		b, err := tx.Backups().Get(ctx, of.ID, file)
		if err != nil {
			return err
		}
		r.NextReadingAt, b.LastReadAt = time.Time{}, new(time.Time{})
		if err := tx.Databases().Save(ctx, r); err != nil {
			return err
		}
		return tx.Backups().Save(ctx, b)
	})
}

// rot does it in the agent's folder and in the metadata.
func (r *realService) rot(of spec.Created, file backup.Filename) error {
	set, err := r.BackupSet(context.Background(), of.ID, file)
	if err != nil {
		return err
	}
	path, err := set.Path(backupfiles.Data)
	if err != nil {
		return err
	}
	stored, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	stored[len(stored)/2] ^= 1
	if err := os.WriteFile(path, stored, 0o600); err != nil {
		return err
	}
	_, err = query(r.MetadataURL(), statementTime,
		"UPDATE backups SET last_read_at = 'epoch' WHERE filename = '"+string(file)+"' AND database_id = '"+string(of.ID)+"'",
		"UPDATE databases SET next_reading_at = 'epoch' WHERE id = '"+string(of.ID)+"'")
	return err
}
