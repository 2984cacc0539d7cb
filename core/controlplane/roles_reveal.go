package controlplane

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// RevealedRole is a role with its password.
type RevealedRole struct {
	RoleState
	Password string
}

// Reveal returns the password of a role after the server has said that it is in force, and writes that into the activity log
// first. FORBIDDEN, ROLE_NOT_FOUND. MANAGED_ROLE_CONFLICT: the role is not ready, a change of it is unfinished, its validity has
// ended, or its password on the server is another one. AGENT_ERROR: the server could not be asked.
func (r *Roles) Reveal(ctx context.Context, reached Reached, of id.RoleID) (RevealedRole, error) {
	if err := reached.Permit(account.Configure); err != nil {
		return RevealedRole{}, err
	}
	target, err := r.revealable(ctx, reached.record.ID, of)
	if err != nil {
		return RevealedRole{}, err
	}
	if err := r.inForce(ctx, reached.record, target.Username, target.Verifier); err != nil {
		return RevealedRole{}, err
	}
	password, err := r.Secrets.Open(target.Sealed, target.SecretContext())
	if err != nil {
		return RevealedRole{}, err
	}
	var state RoleState
	err = r.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		record, err := tx.Databases().Lock(ctx, reached.record.ID)
		if err != nil {
			return notFound(err, errDatabaseNotFound())
		}
		now, err := livingRole(ctx, tx, record.ID, of)
		if err != nil {
			return err
		}
		if err := r.admitsReveal(now); err != nil {
			return err
		}
		if now.CredentialGeneration != target.CredentialGeneration {
			return errChangedMeanwhile()
		}
		state = stateOf(now, record.RoleGeneration)
		return r.audit(ctx, tx, record, reached.caller.Actor(), audit.RoleRevealed, roleDetails(now))
	})
	if err != nil {
		return RevealedRole{}, err
	}
	return RevealedRole{RoleState: state, Password: string(password)}, nil
}

func (r *Roles) revealable(ctx context.Context, db id.DatabaseID, of id.RoleID) (target role.Role, err error) {
	err = r.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		target, err = livingRole(ctx, tx, db, of)
		return err
	})
	if err == nil {
		err = r.admitsReveal(target)
	}
	return target, err
}

func (r *Roles) admitsReveal(target role.Role) error {
	if err := (role.Scene{}).AdmitsReveal(target, r.Clock.Now()); err != nil {
		return err
	}
	if target.ChangeID != "" {
		return errUnfinished()
	}
	return nil
}

// inForce compares a login with what its server has.
func (b *base) inForce(ctx context.Context, record database.Record, username, verifier string) error {
	ctx, cancel := b.patient(ctx)
	defer cancel()
	agent, err := b.agentOf(ctx, record.ServerID)
	if err != nil {
		return err
	}
	condition, err := agent.InspectLogin(ctx, record.ID, username, verifier)
	if err != nil {
		return fault.Wrap(err, fault.AgentError, "the database server could not be asked whether the password is in force")
	}
	switch {
	case condition == ports.LoginInForce:
		return nil
	case condition == ports.LoginAbsent:
		return fault.New(fault.ManagedRoleConflict, "the database server has no such login")
	case condition == ports.LoginDrifted:
		return fault.New(fault.ManagedRoleConflict,
			"the password was changed on the server and is no longer the one that was made here: a rotation repairs it")
	case record.Status != database.Active:
		return fault.New(fault.ManagedRoleConflict, "the database is not active: its status is %s", record.Status)
	}
	return fault.New(fault.ManagedRoleConflict, "the login was closed on the server: a rotation repairs it")
}

func errUnfinished() error {
	return fault.New(fault.ManagedRoleConflict, "a change of this login is unfinished")
}

func errChangedMeanwhile() error {
	return fault.New(fault.ManagedRoleConflict, "the login was changed at the same time: repeat the request")
}
