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
	StageQueued    = "queued" // it waits for room on a disk
	StageDumping   = "dumping"
	StageVerifying = "verifying"
)

// Progress is told how far the backup is: a stage and a percentage of the whole, which never falls. It follows bytes and
// tables done.
type Progress func(stage string, percent int)

// Run makes the backup, or resumes it if an earlier call with the same request was interrupted: a complete file is not made
// again, a recorded verification is not repeated, and anything unfinished is removed first.
//
// Errors: BACKUP_STORAGE_FULL (a file that could not be verified for it stays until Discard), BACKUP_CONFLICT (another operation
// has the file name), BACKUP_NOT_VERIFIED (the file exists, as the result says, but its restored copy differs, or cannot be made
// within its bounds), DATABASE_NOT_FOUND. After any other error the outcome is open: call Run again.
func (b *Backuper) Run(ctx context.Context, req Request, progress Progress) (Result, error) {
	done, err := b.turn(ctx, req.OperationID)
	if err != nil {
		return Result{}, err
	}
	defer done()
	c := b.claim(req, rising(progress))
	defer c.end(ctx)
	if err := c.reserve(ctx); err != nil {
		return Result{}, err
	}
	b.Crash("backup.reserved")
	manifest, err := c.file(ctx)
	if err != nil {
		return Result{}, err
	}
	result := Result{Manifest: manifest}
	if req.Verify {
		result.VerifiedAt, err = c.verified(ctx, manifest)
	}
	return result, err
}

// file finds the committed file of the request or makes it.
func (c *claim) file(ctx context.Context) (backup.Manifest, error) {
	manifest, err := c.b.store.Manifest(c.req.DatabaseID, c.req.Filename)
	switch {
	case fault.Has(err, fault.BackupNotFound):
		return c.dump(ctx)
	case err != nil:
		return backup.Manifest{}, err
	case manifest.OperationID != c.req.OperationID:
		return backup.Manifest{}, fault.New(fault.BackupConflict, "another backup has the name %s", c.req.Filename)
	default:
		return manifest, nil
	}
}

// verified finds the record of an earlier verification, or verifies.
func (c *claim) verified(ctx context.Context, m backup.Manifest) (*time.Time, error) {
	at, err := c.b.store.VerifiedAt(m)
	if err != nil || at != nil {
		return at, err
	}
	if err := c.verify(ctx, m); err != nil {
		return nil, err
	}
	now := c.b.cfg.Now().UTC()
	if err := c.b.store.MarkVerified(m, now); err != nil {
		return nil, err
	}
	c.b.Crash("backup.after-verified")
	return &now, nil
}
