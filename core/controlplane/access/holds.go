package access

import (
	"context"

	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/ports"
)

// Holds looks again whether the caller may see a database that was reached a while ago. DATABASE_NOT_FOUND: the key was revoked
// or replaced, or no longer reaches the database. Another error tells nothing about the caller.
func (r Reached) Holds(ctx context.Context, p *plane.Plane) error {
	found, err := p.Admissions.Find(ctx, r.caller.Key.ID)
	if err == nil && found.Key.RevokedAt != nil {
		err = ports.ErrNoRow
	}
	if err != nil {
		return plane.NotFound(err, plane.ErrDatabaseNotFound())
	}
	_, err = ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) (Reached, error) {
		return r.Reach(ctx, tx, r.record.ID)
	})
	return plane.NotFound(err, plane.ErrDatabaseNotFound())
}
