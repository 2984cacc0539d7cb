package provision

import (
	"context"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Passwords are those in force of all logins that may log in, for a server that a database comes to: it goes on with their
// generations.
func Passwords(ctx context.Context, p *base.Base, db id.DatabaseID) (list []command.Password, err error) {
	return ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) (list []command.Password, err error) {
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
