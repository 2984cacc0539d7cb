package roles

import (
	"context"
	"strings"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// outcome is the result of an attempt at a change.
type outcome struct {
	change       role.Change // as it is stored now
	dependencies role.Dependencies
	cause        error // why it is still pending
}

// drive has the agent carry out a pending change and stores its answer. Any number of drivers may do so at once: the agent does
// it once, and the first answer counts. A change whose outcome is unknown stays pending, and a round continues it.
func (d *driver) drive(ctx context.Context, j changeJob) (outcome, error) {
	points := changePoints(j.change)
	d.base.Crash(points.reserved)
	result, err := d.carryOutNewest(ctx, j)
	switch {
	case stuck(err):
		return d.settleRefused(ctx, j, err)
	case err != nil:
		return d.postpone(ctx, j, err)
	}
	d.base.Crash(points.confirmed)
	o, err := d.conclude(ctx, j, result)
	if err == nil {
		d.base.Crash(points.committed)
	}
	return o, err
}

func changePoints(c role.Change) steps {
	switch {
	case c.Kind == role.Rotation:
		return rotateSteps
	case c.Kind == role.Expiry:
		return expireSteps
	case c.Kind == role.Removal:
		return removeSteps
	case strings.HasPrefix(string(c.Key), idempotency.InternalPrefix):
		return deleteSteps
	}
	return revokeSteps
}

// carryOut sends the command to the agent. An error means that the outcome is unknown, or that the agent cannot do it now.
func (d *driver) carryOut(ctx context.Context, j changeJob) (role.Result, error) {
	agent, err := d.base.AgentOf(ctx, j.record.ServerID)
	if err != nil {
		return role.Result{}, err
	}
	if j.change.Kind == role.Removal {
		return d.removeRole(ctx, agent, j)
	}
	fresh, err := d.unseal(j.change.Sealed, j.change.SecretContext())
	if err != nil {
		return role.Result{}, err
	}
	old, err := d.unseal(j.current.sealed, j.current.context)
	if err != nil {
		return role.Result{}, err
	}
	proof, err := ports.Do(ctx, agent, ports.Fence{OperationID: j.change.ID}, command.ChangeLogin{
		DatabaseID: j.record.ID, Username: j.change.Username, Generation: j.change.Generation, Want: j.change.Kind,
		CredentialGeneration: j.change.CredentialGeneration, Verifier: j.change.Verifier, ValidUntil: j.change.ExpiresAt,
		NewPassword: fresh, OldPassword: old,
	})
	result := role.Result{Proof: proof}
	if j.change.Kind == role.Rotation && command.RefusedFor(err, command.ReasonNotFound) {
		return role.Result{Missing: true}, nil
	}
	if err == nil && !j.change.Proves(result, old != "") {
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

func (d *driver) removeRole(ctx context.Context, agent ports.Agent, j changeJob) (role.Result, error) {
	neighbours, err := d.neighbours(ctx, j.record)
	if err != nil {
		return role.Result{}, err
	}
	found, err := ports.Do(ctx, agent, ports.Fence{OperationID: j.change.ID}, command.RemoveRole{
		DatabaseID: j.record.ID, Username: j.change.Username, Generation: j.change.Generation, AccountDatabases: neighbours,
	})
	return role.Result{Dependencies: found}, err
}

// neighbours are the other databases of the account on the same server.
func (d *driver) neighbours(ctx context.Context, record database.Record) (list []id.DatabaseID, err error) {
	owner := database.Viewer{AccountID: record.AccountID, Scope: account.FullAccount}
	all, err := ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) ([]database.Record, error) {
		return tx.Databases().Visible(ctx, owner, ports.Page{})
	})
	for _, other := range all {
		if other.ID != record.ID && other.ServerID == record.ServerID {
			list = append(list, other.ID)
		}
	}
	return list, err
}

// loadChange reads everything needed to continue a change, which may have ended by now.
func (d *driver) loadChange(ctx context.Context, c role.Change) (job changeJob, err error) {
	err = d.updateChange(ctx, c, func(ctx context.Context, tx ports.Tx, record database.Record, c role.Change) (err error) {
		job, err = jobOf(ctx, tx, record, c)
		return err
	})
	return job, err
}

// updateChange runs fn in a transaction that has locked the database of a change; ErrNoRow where there is no such change.
func (d *driver) updateChange(
	ctx context.Context, of role.Change, fn func(ctx context.Context, tx ports.Tx, record database.Record, c role.Change) error,
) error {
	return d.base.UpdateDatabase(ctx, of.DatabaseID, func(ctx context.Context, tx ports.Tx, record database.Record) error {
		c, err := tx.RoleChanges().Get(ctx, of.DatabaseID, of.ID)
		if err != nil {
			return err
		}
		return fn(ctx, tx, record, c)
	})
}

// postpone records that the outcome is unknown, unless another driver has learnt it in the meantime.
func (d *driver) postpone(ctx context.Context, j changeJob, cause error) (outcome, error) {
	ctx, cancel := d.base.Settling(ctx)
	defer cancel()
	o := outcome{}
	err := d.updateChange(ctx, j.change, func(ctx context.Context, tx ports.Tx, record database.Record, c role.Change) (err error) {
		if o = (outcome{change: c}); !c.Open() {
			return nil
		}
		o.cause = cause
		if c.Kind == role.Removal && command.RefusedFor(cause, command.ReasonConflict) {
			o.change, err = d.renewRemoval(ctx, tx, record, c)
			return err
		}
		o.change.Attempts++
		o.change.Refusal = refusalOf(cause)
		o.change.NotBefore = d.base.Clock.Now().Add(operation.Backoff(o.change.Attempts))
		return tx.RoleChanges().Save(ctx, o.change)
	})
	if err == nil && o.change.Open() {
		what := "change.unconfirmed"
		if o.change.Refusal != "" {
			what = "change.stuck"
		}
		d.logChange(ctx, what, o.change, cause)
	}
	return o, err
}

// renewRemoval replaces a removal that was sent to the agent with a different list of the account's databases: a command must
// never be repeated with another payload.
func (d *driver) renewRemoval(
	ctx context.Context, tx ports.Tx, record database.Record, c role.Change,
) (role.Change, error) {
	target, err := tx.Roles().Get(ctx, record.ID, c.RoleID)
	if err != nil {
		return c, err
	}
	if err := tx.RoleChanges().Save(ctx, c.Ended(role.Refused, d.base.Clock.Now())); err != nil {
		return c, err
	}
	cell, err := target.Status.Decide(role.Delete)
	if err != nil {
		return c, err
	}
	again := role.Change{Kind: role.Removal, Key: d.internalKey("remove"), Actor: c.Actor, RequestID: c.RequestID}
	job, err := d.changeRole(ctx, tx, record, target, cell, intent{Change: again})
	return job.change, err
}

// logChange tells the operator of the progress of a change.
func (d *driver) logChange(ctx context.Context, what string, c role.Change, err error) {
	d.base.Journal.Log(ctx, ports.JournalEvent{
		What: what, DatabaseID: c.DatabaseID, OperationID: c.ID, RoleID: c.RoleID, Kind: string(c.Kind), RequestID: c.RequestID,
		Err: err,
	})
}
