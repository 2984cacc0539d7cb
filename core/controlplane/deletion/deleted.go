package deletion

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Listing is the way of a full-account key to its deleted databases, through their gate.
type Listing struct{ access.Passage }

// Shown is a deleted database as it is at a time.
type Shown struct {
	deletion.Scene
	Status       deletion.RecoveryStatus
	Downloadable bool
}

// Reveal lets a caller see the deleted databases of its account. KEY_SCOPE_DENIED: no full-account key. FEATURE_NOT_AVAILABLE:
// the gate is closed.
func (d *Deletion) Reveal(ctx context.Context, c access.Caller) (Listing, error) {
	if err := c.RequireFullAccount(); err != nil {
		return Listing{}, err
	}
	return access.Find(ctx, d.base.Store, c, []rollout.Gate{rollout.DeletedDatabases}, base.ErrDatabaseNotFound(),
		func(_ context.Context, _ ports.Tx, p access.Passage) (Listing, error) { return Listing{p}, nil })
}

// List returns the deleted databases of the account that are not purged, the one deleted last first, and the position of the last
// one where there are more.
func (d *Deletion) List(ctx context.Context, l Listing, p ports.Page) ([]Shown, *ports.Position, error) {
	return base.List(ctx, d.base.Store, p,
		func(s Shown) ports.Position {
			return ports.Position{At: s.Tombstone.DeletedAt, ID: string(s.Database.ID)}
		},
		func(ctx context.Context, tx ports.Tx, p ports.Page) (list []Shown, _ error) {
			found, err := tx.Deletions().List(ctx, l.Caller().Account.ID, p)
			now := d.base.Clock.Now()
			for _, s := range found {
				_, none := s.Downloadable(now)
				list = append(list, Shown{s, s.RecoveryStatus(now), none == nil})
			}
			return list, err
		})
}

// ReachBackup finds a database, deleted or not, for the download of its deletion backup. DELETION_BACKUP_NOT_AVAILABLE: it is
// missing, purged or of another account. FEATURE_NOT_AVAILABLE: the gate is closed.
func (d *Deletion) ReachBackup(
	ctx context.Context, c access.Caller, db id.DatabaseID, action account.Action, gates ...rollout.Gate,
) (access.Reached, error) {
	found, err := access.Find(ctx, d.base.Store, c, gates, deletion.ErrNoBackup(),
		func(ctx context.Context, tx ports.Tx, p access.Passage) (access.Reached, error) {
			return p.ReachDeleted(ctx, tx, db)
		})
	if err != nil {
		return access.Reached{}, err
	}
	return found, found.Permit(action)
}

// Download is an open deletion backup, or the rest of one; its holder must close File.Body, which also gives back a slot that
// others may wait for.
type Download struct {
	Backup backup.Backup
	File   ports.File
}

// OpenBackup streams the deletion backup, which the tombstone alone chooses, as Backups.Open does. KEY_SCOPE_DENIED: no
// full-account key. DELETION_BACKUP_NOT_AVAILABLE: see Scene.Downloadable. The other errors are those of Backups.Open.
func (d *Deletion) OpenBackup(ctx context.Context, r access.Reached, has backup.Beginning) (opened Download, err error) {
	if err := r.Caller().RequireFullAccount(); err != nil {
		return opened, err
	}
	if err := r.Permit(account.Own, rollout.DeletedDatabases); err != nil {
		return opened, err
	}
	scene, err := ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) (deletion.Scene, error) {
		return tx.Deletions().Get(ctx, r.Record().ID)
	})
	if err != nil {
		return opened, base.NotFound(err, deletion.ErrNoBackup())
	}
	if opened.Backup, err = scene.Downloadable(d.base.Clock.Now()); err != nil {
		return opened, err
	}
	opened.File, err = d.open(ctx, r, opened.Backup, has)
	if fault.Has(err, fault.BackupNotFound) {
		err = deletion.ErrNoBackup()
	}
	return opened, err
}
