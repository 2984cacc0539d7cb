package roles

import (
	"context"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Anew are the commands that make a role on a server that does not have it.
type Anew struct {
	Username string
	Prepare  command.Returning[command.None]
	Admit    command.Returning[command.None] // nil: it cannot log in
}

// AllAnew are those of the roles of a database, but for those of which no server has heard.
func AllAnew(ctx context.Context, p *base.Base, db id.DatabaseID) (all []Anew, err error) {
	list, err := ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) ([]role.Role, error) {
		return tx.Roles().List(ctx, db)
	})
	for _, r := range list {
		if r.Status == role.Reserved {
			continue
		}
		one := Anew{Username: r.Username, Prepare: setupCommand(role.Prepare, r, "")}
		if r.Status == role.Ready && !r.CredentialExpired(p.Clock.Now()) {
			password, err := p.Secrets.Open(r.Sealed, r.SecretContext())
			if err != nil {
				return nil, err
			}
			one.Admit = setupCommand(role.Admit, r, string(password))
		}
		all = append(all, one)
	}
	return all, err
}
