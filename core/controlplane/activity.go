package controlplane

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/ports"
)

// Activity shows the activity log of a database.
type Activity struct{ *base }

// List returns the entries, newest first, and the position of the last one where there are more.
func (a *Activity) List(ctx context.Context, r Reached, p ports.Page) (list []audit.Entry, next *ports.Position, err error) {
	if err := r.Permit(account.See); err != nil {
		return nil, nil, err
	}
	err = a.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		list, err = tx.Audit().List(ctx, r.record.ID, onePastEnd(p))
		return err
	})
	list, next = cut(list, p, func(e audit.Entry) ports.Position { return ports.Position{At: e.At, ID: string(e.ID)} })
	return list, next, err
}
