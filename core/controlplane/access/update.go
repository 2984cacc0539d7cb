package access

import (
	"context"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// Update runs fn in a transaction that has locked the database, as long as the caller still has the standing with which it was
// reached: between the two a body may have come slowly, and a call may have waited for its turn. Who writes memberships holds
// the same lock, so after a removal nothing is done in the removed person's name. DATABASE_NOT_FOUND where the database, the
// membership or the key's binding is gone, or the member has another role by now: the same request is then decided anew.
func (r Reached) Update(ctx context.Context, p *base.Base, fn base.LockedUpdate) error {
	update := p.UpdateReached
	if r.deleted {
		update = p.UpdateStored
	}
	return update(ctx, r.record.ID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if err := r.StillHolds(ctx, tx); err != nil {
			return err
		}
		return fn(ctx, tx, locked)
	})
}

// StillHolds is what Update asks; the database must be locked.
func (r Reached) StillHolds(ctx context.Context, tx ports.Tx) error {
	now, err := r.again(ctx, tx, r.record.ID)
	if err == nil && now.standing != r.standing {
		err = ports.ErrNoRow
	}
	return base.NotFound(err, base.ErrDatabaseNotFound())
}

// Holds checks again that the caller may see a database that was reached a while ago; nothing needs to be locked.
// DATABASE_NOT_FOUND: the key was revoked or replaced, or no longer reaches the database. Another error says nothing about the
// caller.
func (r Reached) Holds(ctx context.Context, p *base.Base) error {
	_, err := ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) (Reached, error) {
		return r.again(ctx, tx, r.record.ID)
	})
	return base.NotFound(err, base.ErrDatabaseNotFound())
}
