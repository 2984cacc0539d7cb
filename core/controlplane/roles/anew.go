package roles

import (
	"context"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Anew are the roles of a database as a server is to make them, but for those of which no server has heard.
func Anew(ctx context.Context, p *base.Base, db id.DatabaseID) (all []provision.Role, err error) {
	list, err := ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) ([]role.Role, error) {
		return tx.Roles().List(ctx, db)
	})
	for _, r := range list {
		if r.Status == role.Reserved {
			continue
		}
		one := provision.Role{Username: r.Username, Prepare: setupCommand(role.Prepare, r, "")}
		if r.Status == role.Ready && !r.CredentialExpired(p.Clock.Now()) {
			password, err := p.Secrets.Open(r.Sealed, r.SecretContext())
			if err != nil {
				return nil, err
			}
			admit := admitCommand(r, string(password))
			one.Admit = &admit
		}
		all = append(all, one)
	}
	return all, err
}
