// Package previews makes short-lived databases for CI pipelines, and ends them with their leases.
package previews

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

// Previews are the use cases of preview CI keys (spec, section "Preview databases (CI)"). Each key reaches the previews of its
// namespace alone. The owner of the account only looks.
type Previews struct {
	base     *base.Base
	make     Make
	deleting Deleting
	copying  Copying
	shares   shares
}

// Make makes a database, or waits for what an earlier request has begun to make.
type Make func(ctx context.Context, c access.Caller, m provision.Making) (made provision.Made, fresh bool, err error)

// New makes the use cases, and registers their periodic task.
func New(p *base.Base, m Make, d Deleting, c Copying) *Previews {
	made := &Previews{base: p, make: m, deleting: d, copying: c, shares: shares{used: map[share]time.Duration{}}}
	made.registerRounds()
	return made
}

// Reached is a preview that a key's namespace has, as it was when Reach found it.
type Reached struct {
	access.Passage
	preview preview.Preview
}

// Preview is the preview as it was reached.
func (r Reached) Preview() preview.Preview { return r.preview }

// Reach finds a preview of the key's namespace, also one that is deleted. KEY_SCOPE_DENIED: no preview CI key. PREVIEW_NOT_FOUND:
// it is missing, purged, of another namespace, or no preview.
func (p *Previews) Reach(ctx context.Context, c access.Caller, db id.DatabaseID) (Reached, error) {
	if err := c.RequirePreviewKey(); err != nil {
		return Reached{}, err
	}
	return access.Find(ctx, p.base.Store, c, nil, errNotFound(),
		func(ctx context.Context, tx ports.Tx, by access.Passage) (Reached, error) {
			found, err := tx.Previews().Reach(ctx, c.Key.ID, db)
			return Reached{by, found}, err
		})
}

// ReachRef finds the preview that a ref has in the key's namespace: one that is not deleted. What is being recovered is deleted
// until it is recovered. KEY_SCOPE_DENIED: no preview CI key. VALIDATION_ERROR. PREVIEW_NOT_FOUND: the ref has none.
func (p *Previews) ReachRef(ctx context.Context, c access.Caller, ref string) (Reached, error) {
	if err := c.RequirePreviewKey(); err != nil {
		return Reached{}, err
	}
	if err := preview.CheckRef(ref); err != nil {
		return Reached{}, err
	}
	return access.Find(ctx, p.base.Store, c, nil, errNotFound(),
		func(ctx context.Context, tx ports.Tx, by access.Passage) (Reached, error) {
			live, _, err := tx.Previews().OfRef(ctx, c.Key.NamespaceID, ref)
			if err == nil && live == nil {
				err = ports.ErrNoRow
			}
			if err != nil {
				return Reached{}, err
			}
			found, err := tx.Previews().Reach(ctx, c.Key.ID, live.DatabaseID) // not for a key that was revoked meanwhile
			if err == nil && found.Lease.Shown() == preview.Deleted {
				err = ports.ErrNoRow
			}
			return Reached{by, found}, err
		})
}

func errNotFound() error { return fault.New(fault.PreviewNotFound, "no such preview") }

// Get returns a preview as its lease is now.
func (p *Previews) Get(_ context.Context, r Reached) (preview.Preview, error) {
	if r.preview.DatabaseID == "" {
		return preview.Preview{}, errNotFound()
	}
	return r.preview.At(p.base.Clock.Now()), nil
}

// Living returns a page of the previews of the caller's own account that are not deleted, of one namespace or, without one, of
// all, by when their leases end, and the position of the last one where there are more. KEY_SCOPE_DENIED: neither a person nor a
// full-account key.
func (p *Previews) Living(
	ctx context.Context, c access.Caller, of id.NamespaceID, page ports.Page,
) ([]ports.LivingPreview, *ports.Position, error) {
	if err := c.RequireFullAccount(); err != nil {
		return nil, nil, err
	}
	filter, now := ports.PreviewFilter{AccountID: c.Account.ID, NamespaceID: of}, p.base.Clock.Now()
	return base.List(ctx, p.base.Store, page,
		func(l ports.LivingPreview) ports.Position {
			return ports.Position{At: l.ExpiresAt, ID: string(l.DatabaseID)}
		},
		func(ctx context.Context, tx ports.Tx, page ports.Page) ([]ports.LivingPreview, error) {
			list, err := tx.Previews().Living(ctx, filter, page)
			for i := range list {
				list[i].Preview = list[i].At(now)
			}
			return list, err
		})
}

// Extend renews the lease of a preview for so many hours from now on. VALIDATION_ERROR. PREVIEW_LEASE_ENDED: it has ended.
func (p *Previews) Extend(ctx context.Context, r Reached, ttlHours int) (preview.Preview, error) {
	if err := preview.CheckHours(ttlHours); err != nil {
		return preview.Preview{}, err
	}
	return p.update(ctx, r, func(ctx context.Context, tx ports.Tx, s *scene) error {
		extended, err := s.preview.Extend(ttlHours, p.base.Clock.Now())
		if err != nil {
			return err
		}
		s.preview = extended
		return p.base.Audit(ctx, tx, s.record, r.Caller().Actor(), audit.PreviewExtended, audit.Details{
			"expiresAt": extended.ExpiresAt.UTC().Format(time.RFC3339),
		})
	})
}

// SetSchedule says whether the service makes daily backups of a preview. VALIDATION_ERROR on "scheduledBackup".
// PREVIEW_CONFLICT: it is being deleted, or is deleted.
func (p *Previews) SetSchedule(ctx context.Context, r Reached, schedule database.Schedule) (preview.Preview, error) {
	if _, err := database.ParseSchedule(string(schedule)); err != nil {
		return preview.Preview{}, err
	}
	return p.update(ctx, r, func(ctx context.Context, tx ports.Tx, s *scene) (err error) {
		if s.preview, err = s.preview.Configure(p.base.Clock.Now()); err != nil {
			return err
		}
		s.preview.Schedule = schedule
		return p.base.SetSchedule(ctx, tx, s.record, schedule, r.Caller().Actor(), audit.PreviewScheduled)
	})
}

// scene is a preview and its database, both locked.
type scene struct {
	record  database.Record
	preview preview.Preview
}

// update changes a preview in a transaction, as long as the key still reaches it, and returns it as its lease is then.
func (p *Previews) update(
	ctx context.Context, r Reached, change func(ctx context.Context, tx ports.Tx, s *scene) error,
) (changed preview.Preview, err error) {
	err = p.base.UpdateDatabase(ctx, r.preview.DatabaseID, func(
		ctx context.Context, tx ports.Tx, locked database.Record,
	) error {
		if r.Caller().Key.Expired(p.base.Clock.Now()) {
			return account.ErrUnauthorized()
		}
		if _, err := tx.Previews().Reach(ctx, r.Caller().Key.ID, locked.ID); err != nil {
			return err
		}
		if err := locked.Served(); err != nil {
			return err
		}
		s, err := lock(ctx, tx, locked)
		if err != nil {
			return err
		}
		if err := change(ctx, tx, &s); err != nil {
			return err
		}
		changed = s.preview.At(p.base.Clock.Now())
		return tx.Previews().Save(ctx, s.preview)
	})
	if err != nil {
		return preview.Preview{}, base.NotFound(err, errNotFound())
	}
	return changed, nil
}

// lock locks the preview of a locked database.
func lock(ctx context.Context, tx ports.Tx, locked database.Record) (scene, error) {
	found, err := tx.Previews().Lock(ctx, locked.ID)
	return scene{locked, found}, err
}
