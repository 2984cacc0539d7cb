// Package restores brings databases back to what one of their backups holds.
package restores

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Restores restores databases in place (spec, section "Managed restore", and the limited-rollout routes).
type Restores struct {
	base     *base.Base
	settings *settings.Settings
	restored Restored
	admits   Admits
}

// Admits decides whether a database can be had back as it was at a moment, as Moments.Admit does.
type Admits func(ctx context.Context, r access.Reached, at time.Time) error

// Restored notes that a restore has put a database of this size in the place of a locked one: what follows for the quota, and a
// new generation of the settings, which are to be set there.
type Restored func(ctx context.Context, tx ports.Tx, locked database.Record, bytes int64) error

// New makes the use cases, and registers their kind.
func New(p *base.Base, s *settings.Settings, restored Restored, a Admits) *Restores {
	r := &Restores{base: p, settings: s, restored: restored, admits: a}
	r.register()
	return r
}

// Start queues a restore of a database with a single login. FORBIDDEN: anyone but the owner. The other errors are those of
// restore.Scene.AdmitsPlain.
func (r *Restores) Start(
	ctx context.Context, reached access.Reached, filename backup.Filename, c restore.Consents,
) (o operation.Operation, err error) {
	if err := reached.Permit(account.Own, rollout.Restore); err != nil {
		return o, err
	}
	err = reached.Update(ctx, r.base, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		s, of, err := sceneOf(ctx, tx, locked, filename)
		if err != nil {
			return err
		}
		if err := s.AdmitsPlain(of, r.base.Clock.Now()); err != nil {
			return err
		}
		o, err = r.add(ctx, tx, locked, r.operation(locked, reached), restore.Input{
			Filename: filename, ManifestSHA256: of.ManifestSHA256, Consents: c,
		})
		return err
	})
	if err == nil {
		r.base.Work.Reserved(Kind)
	}
	return o, err
}

// Order queues a restore of a database on the order of the people who run the service; a worker carries it out, whatever logins
// the database has. VALIDATION_ERROR on "reason". DATABASE_NOT_FOUND. The other errors are those of restore.Scene.AdmitsOrdered.
func (r *Restores) Order(
	ctx context.Context, db id.DatabaseID, filename backup.Filename, c restore.Consents, by operation.Order,
) (o operation.Operation, err error) {
	if err := by.Check(); err != nil {
		return o, err
	}
	err = r.base.UpdateReached(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		s, of, err := sceneOf(ctx, tx, locked, filename)
		if err != nil {
			return err
		}
		if err := s.AdmitsOrdered(of, r.base.Clock.Now()); err != nil {
			return err
		}
		o, err = r.add(ctx, tx, locked, r.base.Work.Queued(locked, Kind, nil, work.Origin{Actor: audit.Operator}), restore.Input{
			Filename: filename, ManifestSHA256: of.ManifestSHA256, Consents: c, Ordered: by.Ordered(),
		})
		return err
	})
	if err == nil {
		r.base.Work.Reserved(Kind)
	}
	return o, err
}

// FromUpload queues a restore from a dump of the customer's own, in a transaction that has locked the database. The caller says
// Work.Reserved afterwards. The errors are those of restore.Scene.AdmitsUpload.
func (r *Restores) FromUpload(
	ctx context.Context, tx ports.Tx, locked database.Record, reached access.Reached, u restore.Upload,
	c restore.Consents,
) (o operation.Operation, err error) {
	s := restore.Scene{Database: locked}
	open, err := tx.Operations().Open(ctx, locked.ID)
	if err = base.NotFound(err, nil); err != nil {
		return o, err
	}
	s.Open = open.ID
	if err := readLogins(ctx, tx, &s); err != nil {
		return o, err
	}
	if err := s.AdmitsUpload(); err != nil {
		return o, err
	}
	return r.add(ctx, tx, locked, r.operation(locked, reached), restore.Input{Upload: &u, Consents: c})
}

func (r *Restores) operation(locked database.Record, by access.Reached) operation.Operation {
	return r.base.Work.Queued(locked, Kind, nil, by.Caller().Origin())
}

// add stores the operation, its use of a backup, and a line of the activity log. The caller has locked the database.
func (r *Restores) add(
	ctx context.Context, tx ports.Tx, locked database.Record, o operation.Operation, input restore.Input,
) (operation.Operation, error) {
	o.Input = operation.Encode(input)
	if err := tx.Operations().Add(ctx, o); err != nil {
		return o, err
	}
	if input.Upload == nil && input.At == nil {
		use := operation.Use{OperationID: o.ID, DatabaseID: locked.ID, Backup: string(input.Filename)}
		if err := tx.Uses().Add(ctx, use); err != nil {
			return o, err
		}
	}
	return o, r.base.Audit(ctx, tx, locked, o.Actor, audit.RestoreRequested, detailsOf(o, input))
}

// detailsOf are what the activity log says about a restore.
func detailsOf(o operation.Operation, input restore.Input) audit.Details {
	details := audit.Details{"operationId": string(o.ID)}
	maps.Copy(details, input.Ordered.Details())
	if input.AcceptIncomplete {
		details["acceptIncomplete"] = "true"
	}
	if input.ConfirmShrink {
		details["confirmShrink"] = "true"
	}
	if input.Upload != nil {
		details["uploadId"] = string(input.Upload.ID)
		return details
	}
	if input.At != nil {
		details[recovery.Field] = recovery.Text(*input.At)
		return details
	}
	details["filename"] = string(input.Filename)
	return details
}

// sceneOf reads what determines whether a database may be restored from a backup; of is nil where it has no such backup. The
// caller has locked the database, or the scene may be over by the time it is looked at.
func sceneOf(
	ctx context.Context, tx ports.Tx, r database.Record, filename backup.Filename,
) (s restore.Scene, of *backup.Backup, err error) {
	s.Database = r
	open, err := tx.Operations().Open(ctx, r.ID)
	if err = base.NotFound(err, nil); err != nil {
		return s, nil, err
	}
	s.Open = open.ID
	if err := readLogins(ctx, tx, &s); err != nil {
		return s, nil, err
	}
	found, err := tx.Backups().Get(ctx, r.ID, filename)
	if errors.Is(err, ports.ErrNoRow) {
		return s, nil, nil
	}
	return s, &found, err
}

// readLogins reads what is being done to the logins of a scene's database. A legacy role whose making nobody can go on with or
// end, as the database was deactivated, keeps nobody from a restore.
func readLogins(ctx context.Context, tx ports.Tx, s *restore.Scene) error {
	change, err := tx.RoleChanges().Pending(ctx, s.Database.ID)
	if err = base.NotFound(err, nil); err != nil {
		return err
	}
	s.Change = change.ID
	if s.Database.RoleModel == database.SingleLogin {
		granted, err := tx.Switches().Grants(ctx, s.Database.ID)
		if err != nil || role.LegacyRoles.Gate.Check(granted) != nil {
			return err
		}
	}
	roles, err := tx.Roles().List(ctx, s.Database.ID)
	for _, one := range roles {
		if one.Status == role.Reserved || one.Status == role.SQLReady {
			s.Making = one.ID
		}
	}
	return err
}
