package provision

import (
	"context"
	"fmt"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// mostBackups bounds how many of a database's backups are taken over, the newest.
const mostBackups = 1000

// Backups are those of a database that another server takes over, newest first.
func Backups(ctx context.Context, p *base.Base, db id.DatabaseID) ([]backup.Backup, error) {
	return ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) ([]backup.Backup, error) {
		return tx.Backups().List(ctx, db, ports.Page{Limit: mostBackups})
	})
}

// Adopt has the agent take a backup over, or tell how far it is: the call "adopt". One that it could not take over now is tried
// again.
func Adopt(
	ctx context.Context, l *work.Lease, a ports.Agent, b backup.Backup, q command.AdoptBackup,
) (found command.BackupReading, err error) {
	q.DatabaseID, q.Filename, q.SizeBytes, q.ManifestSHA256 = b.DatabaseID, b.Filename, b.SizeBytes, b.ManifestSHA256
	err = l.Call(ctx, "adopt", func(ctx context.Context, f ports.Fence) (err error) {
		q.Turn = f.Epoch
		found, err = ports.Ask(ctx, a, q)
		return err
	})
	if command.RefusedFor(err, command.ReasonCrowded) {
		return command.BackupReading{State: command.ReadingRunning}, nil
	}
	if err == nil && found.State == command.ReadingUnsure {
		err = fmt.Errorf("the backup %s was not taken over: %s", b.Filename, found.Why)
	}
	return found, err
}
