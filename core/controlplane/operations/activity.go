package operations

import (
	"context"
	"maps"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Activity shows the activity log of a database.
type Activity struct{ base *base.Base }

// NewActivity makes the use cases.
func NewActivity(p *base.Base) *Activity { return &Activity{base: p} }

// List returns the entries with those who acted, newest first, and the position of the last one where there are more.
func (a *Activity) List(
	ctx context.Context, r access.Reached, p ports.Page,
) ([]base.By[audit.Entry], *ports.Position, error) {
	if err := r.Permit(account.See); err != nil {
		return nil, nil, err
	}
	return base.List(ctx, a.base.Store, p,
		func(e base.By[audit.Entry]) ports.Position {
			return ports.Position{At: e.What.At, ID: string(e.What.ID)}
		},
		func(ctx context.Context, tx ports.Tx, p ports.Page) ([]base.By[audit.Entry], error) {
			list, err := Log(ctx, tx, r.Record().ID, p)
			if err == nil && r.Standing() != account.Owner {
				hideAddresses(list)
			}
			return list, err
		})
}

// hideAddresses removes the mail addresses, masked ones too, of people who were invited, added or removed. Members see who acts,
// by name; the list of people with their addresses is the owner's.
func hideAddresses(list []base.By[audit.Entry]) {
	for i := range list {
		details := maps.Clone(list[i].What.Details)
		delete(details, "email")
		list[i].What.Details = details
	}
}

// Log reads the entries of a database, newest first, with those who acted.
func Log(ctx context.Context, tx ports.Tx, db id.DatabaseID, p ports.Page) ([]base.By[audit.Entry], error) {
	list, err := tx.Audit().List(ctx, db, p)
	if err != nil {
		return nil, err
	}
	return base.WithPersons(ctx, tx, list, func(e audit.Entry) id.UserID { return e.UserID })
}
