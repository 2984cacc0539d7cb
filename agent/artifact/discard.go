package artifact

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/core/fault"
)

// Discard removes what an unfinished backup of a request left behind: its sessions, its login, its isolated copy, partial files,
// and companions of a file that was never committed. A committed file stays. The request must not be running.
func (b *Backuper) Discard(ctx context.Context, req Request) error {
	err := b.cfg.with(b.cfg.Maintenance, "", func(admin *sql.DB) error {
		_, err := admin.ExecContext(ctx, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
			WHERE pid <> pg_backend_pid() AND application_name = $1`, sessionName(req.OperationID))
		if err != nil {
			return fmt.Errorf("end the backup's sessions: %w", err)
		}
		copied := &isolated{cfg: &b.cfg, op: req.OperationID, admin: admin}
		login := dumpLogin{cfg: &b.cfg, op: req.OperationID}
		return errors.Join(copied.drop(ctx, b.Crash), dropDumpLogin(ctx, admin, login.name()))
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

// Committed reports whether the file of this very request exists, verified or not.
func (b *Backuper) Committed(req Request) (bool, error) {
	m, err := b.store.Manifest(req.DatabaseID, req.Filename)
	if fault.Has(err, fault.BackupNotFound) {
		return false, nil
	}
	return err == nil && m.OperationID == req.OperationID, err
}
