package artifact

import (
	"context"
	"database/sql"

	"github.com/pgherd/pgherd/core/fault"
)

// Discard removes what an unfinished backup of a request left: partial files, companions of a file that was never committed,
// and its isolated copy. A committed file stays. The request must not run at the same time.
func (b *Backuper) Discard(ctx context.Context, req Request) error {
	err := b.cfg.with(b.cfg.Maintenance, req.OperationID, func(admin *sql.DB) error {
		copied := &isolated{cfg: &b.cfg, op: req.OperationID, admin: admin}
		return copied.drop(ctx, b.Crash)
	})
	if err != nil {
		return err
	}
	_, err = b.store.Manifest(req.DatabaseID, req.Filename)
	if fault.Has(err, fault.BackupNotFound) {
		return b.store.Delete(req.DatabaseID, req.Filename)
	}
	return err
}

// Committed reports whether the file of this very request stands, verified or not.
func (b *Backuper) Committed(req Request) (bool, error) {
	m, err := b.store.Manifest(req.DatabaseID, req.Filename)
	if fault.Has(err, fault.BackupNotFound) {
		return false, nil
	}
	return err == nil && m.OperationID == req.OperationID, err
}
