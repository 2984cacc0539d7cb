package backups

import (
	"context"
	"fmt"
	"io"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/ports"
)

// Download is an open backup file, or the rest of one; its holder must close File.Body, which also gives back a slot that others
// may wait for.
type Download struct {
	Backup backup.Backup
	File   ports.File
}

// Open streams a backup file to a caller that has its beginning or nothing of it. It counts against the
// caller's account, whose database it may not be. BACKUP_NOT_FOUND, AGENT_ERROR, AGENT_ROUTE_UNAVAILABLE. RATE_LIMITED: the
// account has Config.DownloadsPerAccount open. SERVER_BUSY: this process has Config.DownloadsPerServer open from the database
// server, and none of them ended within Config.DownloadWait. Reading the file ends with DATABASE_NOT_FOUND soon after the caller
// may no longer do it.
func (b *Backups) Open(
	ctx context.Context, r access.Reached, filename backup.Filename, has backup.Beginning,
) (d Download, err error) {
	if err := r.Permit(account.See); err != nil {
		return Download{}, err
	}
	d.Backup, err = ports.Read(ctx, b.base.Store, func(ctx context.Context, tx ports.Tx) (backup.Backup, error) {
		return tx.Backups().Get(ctx, r.Record().ID, filename)
	})
	if err != nil {
		return Download{}, base.NotFound(err, base.ErrBackupNotFound())
	}
	d.File, err = b.OpenStored(ctx, r, d.Backup, has)
	return d, err
}

// OpenStored is Open for a backup that the caller may read. It shares its slots.
func (b *Backups) OpenStored(
	ctx context.Context, r access.Reached, stored backup.Backup, has backup.Beginning,
) (opened ports.File, err error) {
	release, err := b.downloads.Enter(ctx, r.Caller().Account.ID, r.Record().ServerID)
	if err != nil {
		return opened, err
	}
	defer func() {
		if opened.Body == nil { // also where this panics
			release()
		}
	}()
	file, err := b.openFile(ctx, r, stored, stored.After(has))
	if err != nil {
		return opened, err
	}
	return ports.File{Body: slottedBody{r.Seeing(ctx, b.base, file.Body), file.Body, release}, Size: file.Size}, nil
}

func (b *Backups) openFile(ctx context.Context, r access.Reached, stored backup.Backup, offset int64) (ports.File, error) {
	agent, err := b.base.AgentOf(ctx, r.Record().ServerID)
	if err != nil {
		return ports.File{}, err
	}
	file, err := openAt(ctx, agent, stored, offset)
	if err != nil {
		return ports.File{}, base.FileError(err, "the database server cannot hand the backup out now")
	}
	if offset+file.Size != stored.SizeBytes {
		return ports.File{}, joinClose(errDamaged(stored, offset, file.Size), file)
	}
	if err := b.auditFile(ctx, r, audit.BackupDownloaded, stored.Filename); err != nil {
		return ports.File{}, joinClose(err, file)
	}
	return file, nil
}

// openAt opens a file from a byte on.
func openAt(ctx context.Context, agent ports.Agent, b backup.Backup, offset int64) (ports.File, error) {
	if offset == 0 {
		return agent.Open(ctx, command.OpenBackup{DatabaseID: b.DatabaseID, Filename: b.Filename})
	}
	return agent.Open(ctx, command.OpenRest{DatabaseID: b.DatabaseID, Filename: b.Filename, Offset: offset})
}

// errDamaged answers a file that is not as long as the one that was made: it must not pass for a whole backup.
func errDamaged(b backup.Backup, offset, left int64) error {
	cause := fmt.Errorf("the file has %d bytes after the first %d and was made with %d", left, offset, b.SizeBytes)
	return fault.Wrap(cause, fault.AgentError, "the stored backup file is damaged")
}

func (b *Backups) auditFile(ctx context.Context, r access.Reached, what audit.Action, filename backup.Filename) error {
	return b.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		details := audit.Details{"filename": string(filename)}
		return b.base.Audit(ctx, tx, r.Record(), r.Caller().Actor(), what, details)
	})
}

func joinClose(err error, f ports.File) error {
	_ = f.Body.Close() // the first error is the one to report
	return err
}

func newDownloads(c base.Config) *base.Limiter {
	return base.NewLimiter(
		slot.Limits{PerAccount: c.DownloadsPerAccount, Share: c.DownloadsPerAccount, PerServer: c.DownloadsPerServer}, c.DownloadWait,
		"the account has too many downloads open", "too many downloads from this database server at the moment")
}

// slottedBody is the content of a file; its end gives back the slot.
type slottedBody struct {
	io.Reader
	file    io.Closer
	release func()
}

// Close implements io.Closer.
func (b slottedBody) Close() error {
	defer b.release()
	return b.file.Close()
}
