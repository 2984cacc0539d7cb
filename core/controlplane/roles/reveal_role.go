package roles

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Revealed is a role with its password.
type Revealed struct {
	State
	Password string
}

// Reveal returns the password of a role, after the server has confirmed that it is in force and an activity entry is stored.
// FORBIDDEN, ROLE_NOT_FOUND. MANAGED_ROLE_CONFLICT: the role is not ready, a change of it is unfinished, its validity has
// ended, or its password on the server is another one. AGENT_ERROR: the server could not be asked.
func (r *Roles) Reveal(ctx context.Context, reached access.Reached, of id.RoleID) (Revealed, error) {
	if err := reached.Permit(account.Configure, rollout.AdditionalRoles); err != nil {
		return Revealed{}, err
	}
	var target role.Role
	record, password, err := r.reveal(ctx, reached, audit.RoleRevealed, func(ctx context.Context, tx ports.Tx) (secret, error) {
		var err error
		if target, err = livingRole(ctx, tx, reached.Record().ID, of); err == nil {
			err = target.AdmitsReveal(r.plane.Clock.Now())
		}
		return secret{
			username: target.Username, verifier: target.Verifier, password: sealedPassword{target.Sealed, target.SecretContext()},
			generation: target.CredentialGeneration, details: roleDetails(target),
		}, err
	})
	if err != nil {
		return Revealed{}, err
	}
	return Revealed{State: stateOf(target, record.RoleGeneration), Password: password}, nil
}
