package copies

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// StageVerifying is the stage of a backup that is restored into a copy. It has what DumpShare leaves of the progress.
const (
	StageVerifying = "verifying"
	DumpShare      = 60
)

// Verification is that of a backup file.
type Verification struct {
	Manifest        backup.StoredManifest
	Database, Owner string // as in Request
	Passing         bool   // as in command.Source
	// Try, where it is not nil, tries something in the copy that was found equal, as the login of the copy.
	Try func(ctx context.Context, conn *pgconn.PgConn) error
}

// Verify restores the file, as stored, into an isolated copy, compares the copy with the manifest, and does to it what a restore
// of the database would do before its switch. BACKUP_NOT_VERIFIED says that the backup is at fault, and names statement, object
// and SQLSTATE, or what differs. The caller has the operation's turn, and a claim on room for the copy.
func (x *Copies) Verify(ctx context.Context, c *diskroom.Claim, v Verification, tell jobs.Tell) error {
	err := c.OnceMore(ctx, func() error { return x.verify(ctx, c, v, tell) })
	if diskroom.IsFull(err) {
		return fault.Wrap(err, fault.BackupStorageFull, "the server has no room for the copy that verifies the backup")
	}
	return err
}

func (x *Copies) verify(ctx context.Context, c *diskroom.Claim, v Verification, tell jobs.Tell) error {
	m := v.Manifest
	req := Request{ // the restore of a backup into its own database
		OperationID: m.OperationID, DatabaseID: m.DatabaseID, Database: v.Database, Owner: v.Owner,
		Source: command.Source{
			DatabaseID: m.DatabaseID, Filename: m.Filename, Passing: v.Passing, ManifestSHA256: m.SHA256,
		}, Rows: true,
	}
	set, err := x.openSet(ctx, req)
	if err != nil {
		return err
	}
	defer set.close()
	return x.Server.Admin(m.OperationID, func(admin *sql.DB) error {
		copied := x.copyFor(verification, m.OperationID, m.DatabaseID, admin)
		if err := copied.Drop(ctx, func(string) {}); err != nil {
			return err
		}
		defer x.removeCopy(ctx, copied)
		began, err := recovered(ctx, admin)
		if err != nil {
			return err
		}
		if err := copied.Create(ctx, m.Contents.Locale, x.Crash); err != nil {
			return err
		}
		limited, cancel := x.limitCopy(ctx, "its verification", set.took)
		defer cancel()
		err = copied.watched(limited, c, func(ctx context.Context) error { return x.tryRestore(ctx, copied, req, set, v.Try, tell) })
		return unlessRecovered(ctx, admin, began, unverifiedInTime(limited, err))
	})
}

// tryRestore does all that a restore does to its copy. What is tried needs the login, which is shut afterwards.
func (x *Copies) tryRestore(
	ctx context.Context, copied *Isolated, req Request, set *fileSet, try func(context.Context, *pgconn.PgConn) error,
	tell jobs.Tell,
) error {
	if err := x.restoreSet(ctx, copied, set, jobs.Share(tell, StageVerifying, DumpShare, 30)); err != nil {
		return err
	}
	x.Crash("backup.verify.restored")
	compared := jobs.Share(tell, StageVerifying, DumpShare+30, 9)
	if err := x.compare(ctx, copied, set, req.Rows, compared); err != nil {
		return err
	}
	if try != nil {
		if err := copied.Session(ctx, func(conn *pgconn.PgConn) error { return try(ctx, conn) }); err != nil {
			return err
		}
	}
	_, err := x.handOver(ctx, copied, req, set, x.Crash)
	return err
}

// removeTime is how long the drop of a copy may take until it is left to the sweep.
const removeTime = time.Second

// removeCopy drops the copy. PostgreSQL waits for a checkpoint before it removes files, and for every session of the server. A
// backup that was found equal neither fails for that nor waits for it long: the sweep tries again.
func (x *Copies) removeCopy(ctx context.Context, copied *Isolated) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	if err := copied.Drop(ctx, x.Crash); err != nil {
		x.Log.Info("a copy is left to the next sweep", zap.String("copy", copied.Name()), zap.Error(err))
		x.AskForSweep()
	}
}

// RemoveVerification ends the sessions of an operation, and removes its copy and the login that dumps. The caller has the
// operation's turn.
func (x *Copies) RemoveVerification(ctx context.Context, op id.OperationID) error {
	return x.Server.Admin("", func(admin *sql.DB) error {
		return x.removeAll(ctx, x.copyFor(verification, op, "", admin), x.Crash)
	})
}

// removeAll ends the sessions of a copy's operation, and removes the copy and the login that dumps.
func (x *Copies) removeAll(ctx context.Context, copied *Isolated, crash func(string)) error {
	if err := sessions.EndOperation(ctx, copied.admin, copied.op); err != nil {
		return err
	}
	return errors.Join(copied.Drop(ctx, crash), pgdump.DropLogin(ctx, copied.admin, copied.op, joblogin.RunPatience))
}
