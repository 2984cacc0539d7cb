package roles

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// carryOut sends the command to the agent. An error means that the outcome is unknown, or that the agent cannot do it now.
func (a *attempt) carryOut(ctx context.Context) (result role.Result, err error) {
	if a.change.Kind == role.Removal {
		return a.removeRole(ctx)
	}
	fresh, err := a.unseal(a.change.Sealed, a.change.SecretContext())
	if err != nil {
		return result, err
	}
	old, err := a.unseal(a.current.sealed, a.current.context)
	if err != nil {
		return result, err
	}
	result.Proof, err = work.Send(ctx, a.Lease, "change", a.agent, command.ChangeLogin{
		DatabaseID: a.record.ID, Username: a.change.Username, Generation: a.change.Generation, Want: a.change.Kind,
		CredentialGeneration: a.change.CredentialGeneration, Verifier: a.change.Verifier, ValidUntil: a.change.ExpiresAt,
		NewPassword: fresh, OldPassword: old,
	})
	if a.change.Kind == role.Rotation && command.RefusedFor(err, command.ReasonNotFound) {
		return role.Result{Missing: true}, nil
	}
	if err == nil && !a.change.Proves(result, old != "") {
		err = errNotProven
	}
	return result, err
}

// errNotProven means that an agent reported a change as done without the required proof.
var errNotProven = fault.New(fault.AgentError, "the agent has not proven the change")

func (d *driver) unseal(sealed []byte, bound string) (string, error) {
	if len(sealed) == 0 {
		return "", nil
	}
	text, err := d.base.Secrets.Open(sealed, bound)
	return string(text), err
}

func (a *attempt) removeRole(ctx context.Context) (result role.Result, err error) {
	neighbours, err := a.neighbours(ctx, a.record)
	if err != nil {
		return result, err
	}
	result.Dependencies, err = work.Send(ctx, a.Lease, "change", a.agent, command.RemoveRole{
		DatabaseID: a.record.ID, Username: a.change.Username, Generation: a.change.Generation, AccountDatabases: neighbours,
	})
	return result, err
}

// neighbours are the other databases of the account on the same server.
func (d *driver) neighbours(ctx context.Context, record database.Record) (list []id.DatabaseID, err error) {
	owner := database.Viewer{AccountID: record.AccountID, Scope: account.FullAccount}
	all, err := ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) ([]database.Listed, error) {
		return tx.Databases().Visible(ctx, owner, database.Listing{}, ports.Page{})
	})
	for _, other := range all {
		if other.ID != record.ID && other.ServerID == record.ServerID {
			list = append(list, other.ID)
		}
	}
	return list, err
}

// postpone leaves the change pending, with the refusal of a server that refuses it for good.
func (a *attempt) postpone(ctx context.Context, cause error) (work.Next, error) {
	if a.change.Kind == role.Removal && command.RefusedFor(cause, command.ReasonConflict) {
		return a.renewRemoval(ctx)
	}
	var answer *command.Refusal
	refusal := refusalOf(cause)
	if refusal == a.change.Refusal || !errors.As(cause, &answer) {
		return work.Next{}, cause
	}
	if refusal != "" {
		a.Log("change.stuck", cause)
	}
	return work.Next{}, errors.Join(cause, a.Save(ctx, "stuck", nil, func(ctx context.Context, tx ports.Tx) error {
		c, err := tx.RoleChanges().Get(ctx, a.record.ID, a.change.ID)
		if err != nil {
			return err
		}
		c.Refusal = refusal
		return tx.RoleChanges().Save(ctx, c)
	}))
}

// renewRemoval replaces a removal that was sent to the agent with a different list of the account's databases: a command must
// never be repeated with another payload.
func (a *attempt) renewRemoval(ctx context.Context) (work.Next, error) {
	e := work.Ending{On: operation.Fail, Cause: fault.New(fault.AgentError, "begun anew")}
	e.Also = func(ctx context.Context, tx ports.Tx) error {
		record, err := tx.Databases().Lock(ctx, a.record.ID)
		if err != nil {
			return err
		}
		target, err := tx.Roles().Get(ctx, record.ID, a.change.RoleID)
		if err != nil {
			return err
		}
		if err := tx.RoleChanges().Save(ctx, a.change.Ended(role.Refused, a.base.Clock.Now())); err != nil {
			return err
		}
		cell, err := target.Status.Decide(role.Delete)
		if err != nil {
			return err
		}
		again := intent{left: true}
		again.Kind, again.Key, again.Actor, again.RequestID =
			role.Removal, a.internalKey("remove"), a.change.Actor, a.change.RequestID
		_, err = a.changeRole(ctx, tx, record, target, cell, again)
		return err
	}
	return a.Finish(ctx, e)
}
