package artifact

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Request describes the backup to make.
type Request struct {
	OperationID id.OperationID
	DatabaseID  id.DatabaseID
	Database    string // its name in PostgreSQL
	Filename    backup.Filename
	Verify      bool
	Logins      []string // the database's roles, for the manifest
}

// Result is a backup that exists.
type Result struct {
	Manifest   backup.Manifest
	VerifiedAt *time.Time
}

// The stages of a backup, as an operation shows them.
const (
	StageDumping   = "dumping"
	StageVerifying = "verifying"
)

// Progress is told how far the backup is: a stage and a percentage of the whole, which never falls. It follows bytes and
// tables done.
type Progress func(stage string, percent int)

// Run makes the backup, or resumes it if an earlier call with the same request was interrupted: a complete file is not made
// again, a recorded verification is not repeated, and anything unfinished is removed first.
//
// Errors: BACKUP_STORAGE_FULL (nothing is left), BACKUP_CONFLICT (another operation has the file name), BACKUP_NOT_VERIFIED
// (the file exists, as the result says, but its restored copy differs), DATABASE_NOT_FOUND. After any other error the outcome
// is open: call Run again.
func (b *Backuper) Run(ctx context.Context, req Request, progress Progress) (Result, error) {
	done, err := b.turns.take(ctx, req.OperationID)
	if err != nil {
		return Result{}, err
	}
	defer done()
	manifest, err := b.file(ctx, req, progress)
	if err != nil {
		return Result{}, err
	}
	result := Result{Manifest: manifest}
	if req.Verify {
		result.VerifiedAt, err = b.verified(ctx, manifest, progress)
	}
	return result, err
}

// file finds the committed file of the request or makes it.
func (b *Backuper) file(ctx context.Context, req Request, progress Progress) (backup.Manifest, error) {
	manifest, err := b.store.Manifest(req.DatabaseID, req.Filename)
	switch {
	case fault.Has(err, fault.BackupNotFound):
		return b.dump(ctx, req, progress)
	case err != nil:
		return backup.Manifest{}, err
	case manifest.OperationID != req.OperationID:
		return backup.Manifest{}, fault.New(fault.BackupConflict, "another backup has the name %s", req.Filename)
	default:
		return manifest, nil
	}
}

// verified finds the record of an earlier verification, or verifies.
func (b *Backuper) verified(ctx context.Context, m backup.Manifest, progress Progress) (*time.Time, error) {
	at, err := b.store.VerifiedAt(m)
	if err != nil || at != nil {
		return at, err
	}
	if err := b.verify(ctx, m, progress); err != nil {
		return nil, err
	}
	now := b.cfg.Now().UTC()
	if err := b.store.MarkVerified(m, now); err != nil {
		return nil, err
	}
	b.Crash("backup.after-verified")
	return &now, nil
}
