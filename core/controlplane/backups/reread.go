package backups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// readEvery is how often there is a look for what is to be read. A round reads one backup after another.
const readEvery = 10 * time.Second

// mostToRead is how many of a database's backups are looked at for the one to be read, the newest: nobody needs that many.
const mostToRead = 500

// unread lists the databases whose backups are to be looked at.
func (b *Backups) unread(ctx context.Context, now time.Time) ([]database.Record, error) {
	return b.base.Due(ctx, ports.DueReading, now, base.RoundMost)
}

// errReading ends a round's work on a server: no other backup of it can be read now.
var errReading = errors.New("the server is reading a backup")

// reread has the agent read the backup of a database that is due, round by round until it is over. What comes of it is stored
// once, with when the database's backups are looked at again; the same goes for a reading that failed, so that none holds up the
// others.
func (b *Backups) reread(ctx context.Context, now time.Time, r database.Record) error {
	list, err := ports.Read(ctx, b.base.Store, func(ctx context.Context, tx ports.Tx) ([]backup.Backup, error) {
		return tx.Backups().List(ctx, r.ID, ports.Page{Limit: mostToRead})
	})
	pick, due := backup.ToRead(list, now)
	if err == nil && !due {
		err = b.looked(ctx, now, r, nil)
	}
	if err != nil || !due {
		return b.base.UnlessSettled(ctx, "backup.not_asked", r.ID, err)
	}
	found, err := b.ask(ctx, r, pick)
	switch {
	case rounds.NoAnswer(err):
		return b.base.UnlessSettled(ctx, "backup.not_asked", r.ID, err)
	case command.RefusedFor(err, command.ReasonCrowded), err == nil && found.State == command.ReadingRunning:
		return errReading
	case err != nil:
		found = command.BackupReading{State: command.ReadingUnsure, Why: err.Error()}
	}
	return b.base.UnlessSettled(ctx, "backup.not_read", r.ID, b.concluded(ctx, now, r, pick, found))
}

func (b *Backups) ask(ctx context.Context, r database.Record, pick backup.Backup) (command.BackupReading, error) {
	agent, err := b.base.AgentOf(ctx, r.ServerID)
	if err != nil {
		return command.BackupReading{}, err
	}
	return ports.Ask(ctx, agent, command.RereadBackup{
		DatabaseID: r.ID, Filename: pick.Filename, SizeBytes: pick.SizeBytes, ManifestSHA256: pick.ManifestSHA256,
		Turn: r.NextReadingAt.UnixMilli(),
	})
}

// looked stores when the backups of a database are looked at again, in the transaction of what was found. Another process may
// have done so.
func (b *Backups) looked(ctx context.Context, now time.Time, r database.Record, found base.LockedUpdate) error {
	return b.base.UpdateDatabase(ctx, r.ID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if !locked.NextReadingAt.Equal(r.NextReadingAt) {
			return base.ErrSettled
		}
		locked.NextReadingAt = backup.NextReading(r.ID, now)
		if found == nil {
			return tx.Databases().Save(ctx, locked)
		}
		return found(ctx, tx, locked)
	})
}

// concluded stores what was found of a backup, unless it has been deleted meanwhile, or made anew.
func (b *Backups) concluded(
	ctx context.Context, now time.Time, r database.Record, pick backup.Backup, found command.BackupReading,
) error {
	if found.State == command.ReadingUnsure {
		return errors.Join(b.looked(ctx, now, r, nil), fmt.Errorf("the backup %s could not be read: %s", pick.Filename, found.Why))
	}
	what := ""
	err := b.looked(ctx, now, r, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		what = ""
		current, err := tx.Backups().Get(ctx, r.ID, pick.Filename)
		if errors.Is(err, ports.ErrNoRow) || err == nil && current.OperationID != pick.OperationID {
			return tx.Databases().Save(ctx, locked)
		}
		if err != nil {
			return err
		}
		if what, err = b.judge(ctx, tx, &locked, current, now, found); err != nil {
			return err
		}
		return tx.Databases().Save(ctx, locked)
	})
	if err == nil && what != "" {
		e := ports.JournalEvent{What: what, DatabaseID: r.ID, ServerID: r.ServerID, OperationID: pick.OperationID}
		if what == damaged {
			e.Err = fmt.Errorf("%s: %s", pick.Filename, found.Why)
		}
		b.base.Journal.Log(ctx, e)
	}
	return err
}

// damaged is the journal's name of a backup that was found damaged.
const damaged = "backup.damaged"

// judge stores what was found of a backup, and tells what is news. What of it belongs into the record of the locked database is
// for the caller to save.
func (b *Backups) judge(
	ctx context.Context, tx ports.Tx, locked *database.Record, current backup.Backup, now time.Time, found command.BackupReading,
) (news string, err error) {
	if found.State == command.ReadingWhole {
		after, mended := current.FoundWhole(now, found.VerifiedAt)
		if err := tx.Backups().Save(ctx, after); err != nil || !mended {
			return "", err
		}
		return "backup.mended", b.base.Audit(ctx, tx, *locked, audit.System, audit.BackupMended, audit.Details{
			"filename": string(current.Filename), "operationId": string(current.OperationID),
		})
	}
	isNews, err := b.base.FoundDamaged(ctx, tx, *locked, current, now, found.Why)
	if err != nil || !isNews {
		return "", err
	}
	locked.NextBackupAt = backup.Replacement(*locked, now)
	return damaged, nil
}
