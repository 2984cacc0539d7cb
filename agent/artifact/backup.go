package artifact

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
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
	Owner       string   // to a restore, the role to which everything belongs that is nobody else's
	Logins      []string // the database's roles, for the manifest
	MaxBytes    int64    // how large the file may become; 0: as large as there is room for

	// Try, where it is not nil, tries something in the copy that the verification has found equal, as the login of the copy.
	Try func(ctx context.Context, conn *pgconn.PgConn) error `json:"-"`
}

// Result is a backup that exists.
type Result struct {
	Manifest   backup.StoredManifest
	VerifiedAt *time.Time
}

// The stages of a backup, as an operation shows them.
const (
	StageQueued    = "queued" // it waits for room on a disk
	StageDumping   = "dumping"
	StageVerifying = "verifying"
)

// Progress is told how far the backup is: a stage, a percentage of the whole, which never falls, and the bytes of the part that
// is under way. The percentage follows bytes and tables done.
type Progress func(stage string, percent int, bytes command.Bytes)

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
	return b.run(ctx, req, progress)
}

// run makes the backup. The caller has the operation's turn.
func (b *Backuper) run(ctx context.Context, req Request, progress Progress) (Result, error) {
	c := b.claim(req, rising(progress))
	defer c.end(ctx)
	if err := c.reserve(ctx); err != nil {
		return Result{}, err
	}
	b.Crash("backup.reserved")
	result, err := c.file(ctx)
	if err != nil || !req.Verify || result.VerifiedAt != nil {
		return result, err
	}
	result.VerifiedAt, err = c.verified(ctx, result.Manifest)
	return result, err
}

// file finds the committed file of the request or makes it.
func (c *claim) file(ctx context.Context) (Result, error) {
	found, result, err := c.b.standing(c.req)
	if err != nil {
		return Result{}, err
	}
	switch found {
	case nothing:
		result.Manifest, err = c.dump(ctx)
		return result, err
	case damaged:
		return Result{}, &undumpable{
			reason: "the backup's manifest was damaged on the server's disk; make another backup",
			cause:  fmt.Errorf("%s: %w", c.req.Filename, backup.ErrManifest),
		}
	case foreign:
		return Result{}, fault.New(fault.BackupConflict, "another backup has the name %s", c.req.Filename)
	default:
		return result, nil
	}
}

// verified verifies the file, and records that.
func (c *claim) verified(ctx context.Context, m backup.StoredManifest) (*time.Time, error) {
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
