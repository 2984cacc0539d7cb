package moves

import (
	"context"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// settled demands, in a transaction, that no change of a login is under way any more: from this commit on none is admitted
// either, until customers are in at the other server. Whoever admits one holds the lock of the database, too. errChanging.
func (t *turn) settled(ctx context.Context, tx ports.Tx) error {
	if _, err := tx.Databases().Lock(ctx, t.Record.ID); err != nil {
		return err
	}
	_, err := tx.RoleChanges().Pending(ctx, t.Record.ID)
	if err == nil {
		return errChanging
	}
	return base.NotFound(err, nil)
}

// errChanging means that a password is being changed where the database is. That ends by itself, and is waited for.
var errChanging = fault.New(fault.DatabaseStateConflict, "a password of the database is being changed")

// passwords are those in force of all logins that may log in.
func (m *Moves) passwords(ctx context.Context, db id.DatabaseID) (list []command.Password, err error) {
	return ports.Read(ctx, m.base.Store, func(ctx context.Context, tx ports.Tx) (list []command.Password, err error) {
		logins, err := tx.Logins().List(ctx, db)
		if err != nil {
			return nil, err
		}
		for _, l := range logins {
			list = append(list, command.Password{Username: l.Username, Verifier: l.Verifier, Generation: l.Generation})
		}
		roles, err := tx.Roles().List(ctx, db)
		for _, r := range roles {
			if r.Status == role.Ready {
				list = append(list, command.Password{Username: r.Username, Verifier: r.Verifier, Generation: r.CredentialGeneration})
			}
		}
		return list, err
	})
}
