package adoptions

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/adoption"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// AskedFiles asks for the files of backups to be adopted.
type AskedFiles struct {
	Database id.DatabaseID
	// Filename is the one that is meant; empty: all that have no record.
	Filename backup.Filename
	Order    operation.Order
}

// AdoptedFile is what became of a file.
type AdoptedFile struct {
	backup.Backup
	// Err says why the file has no record, and nothing was done to it; nil: it has one, now or since before.
	Err error
}

// AdoptBackups makes records of the backups of a database that its server has and that no record names: each is read whole, and
// has to be what its manifest says. One that its mark says was verified is so for the record, too, and can be restored from.
// Asked again it changes nothing. What has a record already is returned without a word to the server.
//
// VALIDATION_ERROR on "reason". DATABASE_NOT_FOUND. BACKUP_NOT_FOUND: its server has no such file. AGENT_ERROR: the agent does
// not answer, and what it was asked for before has its records.
func (a *Adoptions) AdoptBackups(ctx context.Context, q AskedFiles) (list []AdoptedFile, err error) {
	if err := q.Order.Check(); err != nil {
		return nil, err
	}
	r, err := a.base.Record(ctx, q.Database)
	if err != nil {
		return nil, base.NotFound(err, base.ErrDatabaseNotFound())
	}
	if q.Filename != "" {
		known, err := ports.Read(ctx, a.base.Store, func(ctx context.Context, tx ports.Tx) (backup.Backup, error) {
			return tx.Backups().Get(ctx, r.ID, q.Filename)
		})
		if !errors.Is(err, ports.ErrNoRow) {
			return []AdoptedFile{{Backup: known}}, err
		}
	}
	agent, err := a.base.AgentOf(ctx, r.ServerID)
	if err != nil {
		return nil, err
	}
	names, err := a.unrecorded(ctx, agent, r, q.Filename)
	for _, name := range names {
		one := AdoptedFile{Backup: backup.Backup{DatabaseID: r.ID, Filename: name}}
		if one.Backup, one.Err = a.adoptFile(ctx, agent, r, name, q.Order); one.Err != nil {
			one.DatabaseID, one.Filename = r.ID, name
		}
		if list = append(list, one); ctx.Err() != nil {
			return list, ctx.Err()
		}
	}
	return list, err
}

// unrecorded are the files that no record names; only is the one that is meant.
func (a *Adoptions) unrecorded(
	ctx context.Context, agent ports.Agent, r database.Record, only backup.Filename,
) ([]backup.Filename, error) {
	files, err := base.Files(ctx, agent)
	if err != nil {
		return nil, fault.Wrap(err, fault.AgentError, "the server does not say which files it has: %s", err)
	}
	known, err := ports.Read(ctx, a.base.Store, func(ctx context.Context, tx ports.Tx) ([]backup.Filename, error) {
		return tx.Backups().Names(ctx, r.ID)
	})
	if err != nil {
		return nil, err
	}
	names := doctor.Unrecorded(r.ID, files, known)
	if only == "" {
		return names, nil
	}
	if !slices.Contains(names, only) {
		return nil, fault.New(fault.BackupNotFound, "the server has no backup %s of the database", only)
	}
	return []backup.Filename{only}, nil
}

// adoptFile reads a file, and makes its record.
func (a *Adoptions) adoptFile(
	ctx context.Context, agent ports.Agent, r database.Record, name backup.Filename, by operation.Order,
) (made backup.Backup, err error) {
	m, err := manifest(ctx, agent, r.ID, name)
	if err != nil {
		return made, err
	}
	found, err := a.read(ctx, agent, r.ID, m)
	if err != nil {
		return made, err
	}
	err = a.base.UpdateStored(ctx, r.ID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if locked.Status == database.Purging {
			return fault.New(fault.DatabaseStateConflict, "the database is being purged, with its backups")
		}
		known, err := tx.Backups().Names(ctx, locked.ID)
		if err != nil {
			return err
		}
		if slices.Contains(known, name) { // somebody else has adopted it, or it is being deleted
			made, err = tx.Backups().Get(ctx, locked.ID, name)
			return base.NotFound(err, fault.New(fault.BackupConflict, "%s is being deleted", name))
		}
		owner, err := tx.Accounts().Get(ctx, locked.AccountID)
		if err != nil {
			return err
		}
		made, err = adoption.File(locked.ID, name, m, found.VerifiedAt, a.base.Clock.Now(), owner.Quotas().BackupDays)
		if err != nil {
			return err
		}
		if err := tx.Backups().Add(ctx, made); err != nil {
			return err
		}
		return a.base.Audit(ctx, tx, locked, audit.Operator, audit.BackupAdopted, audit.Details{
			"filename": string(name), "operator": by.By, "reason": by.Reason,
		})
	})
	return made, err
}

// manifest reads the manifest of a backup.
func manifest(
	ctx context.Context, agent ports.Agent, db id.DatabaseID, name backup.Filename,
) (m backup.StoredManifest, err error) {
	file, err := agent.Open(ctx, command.OpenManifest{DatabaseID: db, Filename: name})
	if err != nil {
		return m, fault.Wrap(err, fault.AgentError, "its manifest cannot be opened: %s", err)
	}
	text, err := io.ReadAll(io.LimitReader(file.Body, backup.MaxManifestBytes+1))
	if err = errors.Join(err, file.Body.Close()); err != nil {
		return m, fault.Wrap(err, fault.AgentError, "its manifest cannot be read to its end: %s", err)
	}
	if m, err = backup.ParseManifest(text); err != nil {
		err = fault.Wrap(err, fault.BackupNotVerified, "it has no manifest that can be read: %s", err)
	}
	return m, err
}

// readPause is the time between two questions how far a reading is.
const readPause = 500 * time.Millisecond

// read has the agent read a backup whole, and compare it with its manifest. BACKUP_NOT_VERIFIED: it is not what that says.
func (a *Adoptions) read(
	ctx context.Context, agent ports.Agent, db id.DatabaseID, m backup.StoredManifest,
) (found command.BackupReading, err error) {
	q := command.RereadBackup{
		DatabaseID: db, Filename: m.Filename, SizeBytes: m.File.SizeBytes, ManifestSHA256: m.SHA256,
		Turn: a.base.Clock.Now().UnixMilli(),
	}
	for {
		found, err = ports.Ask(ctx, agent, q)
		crowded := command.RefusedFor(err, command.ReasonCrowded)
		switch {
		case err != nil && !crowded:
			return found, fault.Wrap(err, fault.AgentError, "the server does not read it: %s", err)
		case crowded, found.State == command.ReadingRunning:
		case found.State == command.ReadingWhole:
			return found, nil
		case found.State == command.ReadingDamaged:
			return found, fault.New(fault.BackupNotVerified, "it is damaged: %s", found.Why)
		default:
			return found, fault.New(fault.AgentError, "it could not be read: %s", found.Why)
		}
		select {
		case <-time.After(readPause):
		case <-ctx.Done():
			return found, ctx.Err()
		}
	}
}
