package controlplane

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
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
func (b *base) reveal(
	ctx context.Context, reached Reached, what audit.Action, read func(context.Context, ports.Tx) (secret, error),
) (record database.Record, password string, err error) {
	var seen secret
	err = b.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		seen, err = read(ctx, tx)
		return err
	})
	if err != nil {
		return record, "", err
	}
	release, err := b.mayCall(ctx, reached)
	if err != nil {
		return record, "", err
	}
	defer release()
	if err := b.inForce(ctx, reached.record, seen.username, seen.verifier); err != nil {
		return record, "", err
	}
	if password, err = b.unseal(seen.password); err != nil {
		return record, "", err
	}
	err = b.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		var err error
		if record, err = tx.Databases().Lock(ctx, reached.record.ID); err != nil {
			return notFound(err, errDatabaseNotFound())
		}
		now, err := read(ctx, tx)
		switch {
		case err != nil:
			return err
		case now.generation != seen.generation:
			return errChangedMeanwhile()
		}
		return b.audit(ctx, tx, record, reached.caller.Actor(), what, now.details)
	})
	if err != nil {
		return record, "", err
	}
	return record, password, nil
}

// inForce compares a login's password with that on its server.
func (b *base) inForce(ctx context.Context, record database.Record, username, verifier string) error {
	ctx, cancel := b.patient(ctx)
	defer cancel()
	agent, err := b.agentOf(ctx, record.ServerID)
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
