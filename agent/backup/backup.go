package backup

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/agent/store"
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
	Passing     bool // as in command.Backup
	Verify      bool
	Owner       string   // to a restore, the role to which everything belongs that is nobody else's
	Logins      []string // the database's roles, for the manifest
	MaxBytes    int64    // how large the file may become; 0: as large as there is room for

	// At is the moment whose content the file has; nil: now.
	At *time.Time
	// Lost is the installation of a server that is gone: the file has what the database held there last, and the database was about
	// Size large. Empty: it is of this server.
	Lost string
	Size int64

	// Followed says that the changes of the database are kept from the moment on that the file is of.
	Followed bool

	Account id.AccountID `json:"-"` // whose the database is; empty where that is not known

	// Aside, where it is not nil, waits for something with the job's slot given up, and returns when the job has one again.
	Aside func(ctx context.Context, wait func(context.Context) error) error `json:"-"`

	// Try, where it is not nil, tries something in the copy that the verification has found equal, as the login of the copy.
	Try func(ctx context.Context, conn *pgconn.PgConn) error `json:"-"`
}

func (x *Backups) files(req Request) *store.Store { return x.FilesOf(req.Passing) }

// Result is a backup that exists.
type Result struct {
	Manifest   backup.StoredManifest
	VerifiedAt *time.Time
	// AsOf is the last moment of a server that is gone, where the file was made from its archive just now.
	AsOf *time.Time
}

// Run makes the backup, or resumes it if an earlier call with the same request was interrupted: a complete file is not made
// again, a recorded verification is not repeated, and anything unfinished is removed first.
//
// Errors: BACKUP_STORAGE_FULL (a file that could not be verified for it stays until Discard), BACKUP_CONFLICT (another operation
// has the file name, or the database has more tables than can be locked), BACKUP_NOT_VERIFIED (the file exists, as the result
// says, but its restored copy differs, or cannot be made within its bounds), DATABASE_NOT_FOUND. After any other error the
// outcome is open: call Run again.
func (x *Backups) Run(ctx context.Context, req Request, tell jobs.Tell) (Result, error) {
	done, err := x.copies.Turn(ctx, req.OperationID)
	if err != nil {
		return Result{}, err
	}
	defer done()
	return x.Make(ctx, req, tell)
}

// Make is Run for who has the operation's turn.
func (x *Backups) Make(ctx context.Context, req Request, tell jobs.Tell) (Result, error) {
	tell = jobs.Rising(tell)
	c := x.Room.Claim(diskroom.Work{
		OperationID: req.OperationID, DatabaseID: req.DatabaseID, Database: req.Database,
		Waits: func() { tell(jobs.StageQueued, 0, command.Bytes{}) },
	})
	defer c.End()
	if err := c.Reserve(ctx, func(ctx context.Context) ([]diskroom.Need, error) { return x.needs(ctx, req) }); err != nil {
		return Result{}, err
	}
	x.Crash("backup.reserved")
	result, err := x.file(ctx, c, req, tell)
	if err != nil || !req.Verify || result.VerifiedAt != nil {
		return result, err
	}
	result.VerifiedAt, err = x.verified(ctx, c, req, result.Manifest, tell)
	return result, err
}

// needs is the room for what is not yet made.
func (x *Backups) needs(ctx context.Context, req Request) (list []diskroom.Need, err error) {
	found, _, err := x.standsFor(ctx, req)
	if err != nil || found == foreign || found == damaged || found == complete {
		return nil, err
	}
	size, err := x.sizeOf(ctx, req)
	if err != nil {
		return nil, noDatabase(err)
	}
	if found == nothing && req.apart() {
		beside, err := x.roomBeside(ctx, req, size)
		if err != nil {
			return nil, err
		}
		list = append(list, beside)
	}
	if found == nothing {
		list = append(list, diskroom.Need{Purpose: diskroom.Dump, Bytes: diskroom.DumpSize(size)})
	}
	if req.Verify {
		list = append(list, diskroom.Need{Purpose: diskroom.Copy, Bytes: diskroom.CopySize(size)})
	}
	return list, nil
}

// sizeOf is how large the database is. One that is had back as it was may be out of service, under another name.
func (x *Backups) sizeOf(ctx context.Context, req Request) (size int64, err error) {
	switch {
	case req.Lost != "":
		return req.Size, nil
	case req.At == nil || x.Past == nil:
		return x.Room.SizeOf(ctx, req.Database)
	}
	return x.Past.Size(ctx, req.DatabaseID)
}

// file finds the committed file of the request or makes it, and then gives back the room that was reserved for it.
func (x *Backups) file(ctx context.Context, c *diskroom.Claim, req Request, tell jobs.Tell) (Result, error) {
	found, result, err := x.standsFor(ctx, req)
	if err != nil {
		return Result{}, err
	}
	switch found {
	case nothing:
		written := func(context.Context) (int64, error) { return x.files(req).Written(req.DatabaseID, req.Filename) }
		err := c.Watch(ctx, diskroom.Dump, written, func(ctx context.Context) (err error) {
			result, err = x.dump(ctx, c, req, tell)
			return err
		})
		if err != nil {
			return Result{}, err
		}
		c.Release(diskroom.Dump)
		return result, nil
	case damaged:
		return Result{}, &pgdump.Undumpable{
			Reason: "the backup's manifest was damaged on the server's disk; make another backup",
			Cause:  fmt.Errorf("%s: %w", req.Filename, backup.ErrManifest),
		}
	case foreign:
		return Result{}, fault.New(fault.BackupConflict, "another backup has the name %s", req.Filename)
	default:
		return result, nil
	}
}

// verified verifies the file, and records that.
func (x *Backups) verified(
	ctx context.Context, c *diskroom.Claim, req Request, m backup.StoredManifest, tell jobs.Tell,
) (*time.Time, error) {
	v := copies.Verification{Manifest: m, Database: req.Database, Owner: req.Owner, Passing: req.Passing, Try: req.Try}
	if err := x.copies.Verify(ctx, c, v, tell); err != nil {
		return nil, err
	}
	now := x.Now().UTC()
	if err := x.files(req).MarkVerified(ctx, m, now); err != nil {
		return nil, err
	}
	x.Crash("backup.after-verified")
	return &now, nil
}
