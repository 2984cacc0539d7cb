package roles

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/ports"
)

// secret is a password that may be shown, with its login's names on the server and in the activity log.
type secret struct {
	username, verifier string
	password           sealedPassword
	generation         int64 // credential generation
	details            audit.Details
}

// reveal decrypts a password after the server has confirmed that it is in force, and stores an activity entry before returning
// it. read returns the secret, or the reason why it may not be shown. It is called before the server is asked, and once more
// afterwards, with the database locked; the returned record is that of the second call.
func (d *driver) reveal(
	ctx context.Context, reached access.Reached, what audit.Action, read func(context.Context, ports.Tx) (secret, error),
) (record database.Record, password string, err error) {
	var seen secret
	err = d.plane.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		seen, err = read(ctx, tx)
		return err
	})
	if err != nil {
		return record, "", err
	}
	release, err := reached.MayCall(ctx, d.plane)
	if err != nil {
		return record, "", err
	}
	defer release()
	if err := d.inForce(ctx, reached.Record(), seen.username, seen.verifier); err != nil {
		return record, "", err
	}
	if password, err = d.unseal(seen.password); err != nil {
		return record, "", err
	}
	err = d.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		var err error
		if record, err = tx.Databases().Lock(ctx, reached.Record().ID); err != nil {
			return plane.NotFound(err, plane.ErrDatabaseNotFound())
		}
		now, err := read(ctx, tx)
		switch {
		case err != nil:
			return err
		case now.generation != seen.generation:
			return errChangedMeanwhile()
		}
		return d.plane.Audit(ctx, tx, record, reached.Caller().Actor(), what, now.details)
	})
	if err != nil {
		return record, "", err
	}
	return record, password, nil
}

// inForce compares a login's password with that on its server.
func (d *driver) inForce(ctx context.Context, record database.Record, username, verifier string) error {
	ctx, cancel := d.plane.Patient(ctx)
	defer cancel()
	agent, err := d.plane.AgentOf(ctx, record.ServerID)
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
