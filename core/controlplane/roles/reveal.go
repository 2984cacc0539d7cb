package roles

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// secret is a login whose password may be shown, with what the activity log says of it.
type secret struct {
	currentLogin
	details audit.Details
}

// reveal decrypts a password after the server has confirmed that it is in force, and stores an activity entry before returning
// it. read returns the secret, or the reason why it may not be shown. It is called before the server is asked, and once more
// afterwards, with the database locked; the returned record is that of the second call.
func (d *driver) reveal(
	ctx context.Context, reached access.Reached, what audit.Action, read func(context.Context, ports.Tx) (secret, error),
) (record database.Record, password string, err error) {
	seen, err := ports.Read(ctx, d.base.Store, read)
	if err != nil {
		return record, "", err
	}
	release, err := reached.MayCall(ctx, d.base)
	if err != nil {
		return record, "", err
	}
	defer release()
	if err := d.inForce(ctx, reached.Record(), seen.username, seen.verifier); err != nil {
		return record, "", err
	}
	if password, err = d.unseal(seen.sealed, seen.context); err != nil {
		return record, "", err
	}
	err = reached.Update(ctx, d.base, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		record = locked
		now, err := read(ctx, tx)
		switch {
		case err != nil:
			return err
		case now.generation != seen.generation:
			return errChangedMeanwhile()
		}
		return d.base.Audit(ctx, tx, record, reached.Caller().Actor(), what, now.details)
	})
	if err != nil {
		return record, "", err
	}
	return record, password, nil
}

// inForce compares a login's password with that on its server.
func (d *driver) inForce(ctx context.Context, record database.Record, username, verifier string) error {
	ctx, cancel := d.base.Patient(ctx)
	defer cancel()
	agent, err := d.base.AgentOf(ctx, record.ServerID)
	if err != nil {
		return err
	}
	question := command.InspectLogin{DatabaseID: record.ID, Username: username, Verifier: verifier}
	login, err := ports.Ask(ctx, agent, question)
	if err != nil {
		return fault.Wrap(err, fault.AgentError, "the database server could not be asked whether the password is in force")
	}
	switch {
	case login.Condition == command.LoginInForce:
		return nil
	case login.Condition == command.LoginAbsent:
		return fault.New(fault.ManagedRoleConflict, "the database server has no such login")
	case login.Condition == command.LoginDrifted:
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

// Revealed is a role with its password.
type Revealed struct {
	State
	Password string
}

// Reveal returns the password of a role, after the server has confirmed that it is in force and an activity entry is stored.
// FORBIDDEN, ROLE_NOT_FOUND. MANAGED_ROLE_CONFLICT: the role is not ready, a change of it is unfinished, its validity has
// ended, or its password on the server is another one. AGENT_ERROR: the server could not be asked.
func (r *Roles) Reveal(ctx context.Context, reached access.Reached, of id.RoleID) (_ Revealed, err error) {
	defer r.ended(&err)
	if err := reached.PermitRecent(r.base.Clock, account.Configure, r.model.Gate); err != nil {
		return Revealed{}, err
	}
	var target role.Role
	record, password, err := r.reveal(ctx, reached, audit.RoleRevealed, func(ctx context.Context, tx ports.Tx) (secret, error) {
		var err error
		if target, err = r.livingRole(ctx, tx, reached.Record().ID, of); err == nil {
			err = target.AdmitsReveal(r.base.Clock.Now())
		}
		return secret{loginOfRole(target), roleDetails(target)}, err
	})
	if err != nil {
		return Revealed{}, err
	}
	return Revealed{State: stateOf(target, record.RoleGeneration), Password: password}, nil
}
