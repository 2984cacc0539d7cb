package operations

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/ports"
)

// Activity shows the activity log of a database.
type Activity struct{ plane *plane.Plane }

// NewActivity makes the use cases.
func NewActivity(p *plane.Plane) *Activity { return &Activity{plane: p} }

// List returns the entries, newest first, and the position of the last one where there are more.
func (a *Activity) List(
	ctx context.Context, r access.Reached, p ports.Page,
) ([]audit.Entry, *ports.Position, error) {
	if err := r.Permit(account.See); err != nil {
		return nil, nil, err
	}
	return plane.List(ctx, a.plane.Store, p,
		func(e audit.Entry) ports.Position { return ports.Position{At: e.At, ID: string(e.ID)} },
		func(ctx context.Context, tx ports.Tx, p ports.Page) ([]audit.Entry, error) {
			return tx.Audit().List(ctx, r.Record().ID, p)
		})
}
