package roles

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// carryOutNewest carries a change out, once more where it has to move past the agent's generations. A rotation sets the password
// that it has stored: the server may have a later one, of which there is no record, so nobody can be shown it. What shuts a
// login out shuts out that password too. A removal that conflicts is begun anew, see renewRemoval.
func (a *attempt) carryOutNewest(ctx context.Context) (role.Result, error) {
	result, err := a.carryOut(ctx)
	if !base.Superseded(err) || a.change.Kind == role.Removal && command.RefusedFor(err, command.ReasonConflict) {
		return result, err
	}
	if err := a.surpass(ctx, err); err != nil {
		return role.Result{}, err
	}
	return a.carryOut(ctx)
}

// surpass moves the change past the agent's generations.
func (a *attempt) surpass(ctx context.Context, refusal error) error {
	a.Log("operation.overtaken", refusal)
	return a.Save(ctx, "generation", nil, func(ctx context.Context, tx ports.Tx) error {
		record, err := tx.Databases().Lock(ctx, a.record.ID)
		if err != nil {
			return err
		}
		c, err := tx.RoleChanges().Get(ctx, record.ID, a.change.ID)
		if err != nil {
			return err
		}
		if c, err = a.surpassCredential(c, refusal); err != nil {
			return err
		}
		record.RoleGeneration = base.NextGeneration(record.RoleGeneration, refusal)
		c.Generation = record.RoleGeneration
		a.record, a.change = record, c
		return errors.Join(tx.Databases().Save(ctx, record), tx.RoleChanges().Save(ctx, c))
	})
}

// surpassCredential gives the new password of a rotation a generation that the agent takes. The password itself stays: an
// earlier attempt may have set it.
func (d *driver) surpassCredential(c role.Change, refusal error) (role.Change, error) {
	known := base.GenerationsOf(refusal).Credential
	if c.Kind != role.Rotation || known < c.CredentialGeneration {
		return c, nil
	}
	password, err := d.base.Secrets.Open(c.Sealed, c.SecretContext())
	if err != nil {
		return c, err
	}
	c.CredentialGeneration = known + 1
	c.Sealed, err = d.base.Secrets.Seal(password, c.SecretContext())
	return c, err
}

// sendSetup sends a step of a role's set-up, once more where it has to move past the agent's generations. It does so only if the
// server has no such login, or one with the role's own password: another password is of a later time, or of another role of that
// name, and is not replaced by an earlier one behind its holder's back.
func (r *Roles) sendSetup(
	ctx context.Context, agent ports.Agent, j setup, send func(role.Role) error,
) error {
	refusal := send(j.role)
	if !base.Superseded(refusal) {
		return r.setupError(ctx, j, refusal)
	}
	if err := r.overtaken(ctx, j); err != nil {
		return err
	}
	r.logSetup(ctx, "role.overtaken", j, refusal)
	question := command.InspectLogin{DatabaseID: j.record.ID, Username: j.role.Username, Verifier: j.role.Verifier}
	switch login, err := ports.Ask(ctx, agent, question); {
	case err != nil:
		return r.setupError(ctx, j, err)
	case login.Condition == command.LoginDrifted:
		return errNotThisRole(refusal, j)
	}
	moved, err := r.surpassSetup(ctx, j, refusal)
	if err != nil {
		return err
	}
	return r.setupError(ctx, j, send(moved))
}

// surpassSetup moves a role that is being created past the agent's generations, unless another process has done so.
func (r *Roles) surpassSetup(ctx context.Context, j setup, refusal error) (moved role.Role, err error) {
	err = r.base.UpdateReached(ctx, j.record.ID, func(ctx context.Context, tx ports.Tx, record database.Record) (err error) {
		moved, err = r.livingRole(ctx, tx, j.record.ID, j.role.ID)
		switch {
		case err != nil:
			return err
		case moved.Status != j.role.Status || moved.ChangeID != "":
			return errChangedMeanwhile()
		case moved.Generation != j.role.Generation:
			return nil
		}
		record.RoleGeneration = base.NextGeneration(record.RoleGeneration, refusal)
		moved.Generation = record.RoleGeneration
		if err := tx.Databases().Save(ctx, record); err != nil {
			return err
		}
		return tx.Roles().Save(ctx, moved)
	})
	return moved, err
}

func errNotThisRole(cause error, j setup) error {
	return fault.Wrap(cause, fault.ManagedRoleConflict,
		"the database server has a role %s that is not this one: delete this role and make another", j.role.Username)
}
