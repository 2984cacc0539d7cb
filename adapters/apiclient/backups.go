package apiclient

import (
	"context"
	"iter"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Backups are the calls about backups and their files.
type Backups struct{ c *Client }

const backupsPath = "/databases/%s/backups"

// List reads one page of the backups of a database, newest first.
func (b Backups) List(ctx context.Context, database id.DatabaseID, p Page, opts ...Option) (wire.Page[wire.Backup], error) {
	return listOf[wire.Backup](ctx, b.c, p, get(backupsPath, string(database)), opts)
}

// All reads every backup of a database, newest first.
func (b Backups) All(ctx context.Context, database id.DatabaseID, opts ...Option) iter.Seq2[wire.Backup, error] {
	return allOf[wire.Backup](ctx, b.c, get(backupsPath, string(database)), opts)
}

// Start starts a backup.
func (b Backups) Start(ctx context.Context, database id.DatabaseID, opts ...Option) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, b.c, post(nil, backupsPath, string(database)), opts)
}

// Download opens a backup file. The context holds for the whole download; the caller closes it.
func (b Backups) Download(
	ctx context.Context, database id.DatabaseID, file backup.Filename, opts ...Option,
) (*Download, error) {
	return b.c.download(ctx, get(backupsPath+"/%s", string(database), string(file)), opts)
}

// Delete deletes a backup file permanently.
func (b Backups) Delete(ctx context.Context, database id.DatabaseID, file backup.Filename, opts ...Option) error {
	return tell(ctx, b.c, remove(backupsPath+"/%s", string(database), string(file)).ofGone(fault.BackupNotFound), opts)
}
