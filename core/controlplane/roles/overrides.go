package roles

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Overrides are what the people who run the service see and do about changes of logins. They do not authenticate.
type Overrides struct{ *driver }

// NewOverrides makes the use cases.
func NewOverrides(p *base.Base) *Overrides { return &Overrides{&driver{p}} }

// Changes lists the changes of the logins of a database, the latest first, without passwords.
func (o *Overrides) Changes(ctx context.Context, db id.DatabaseID) ([]role.Change, error) {
	list, err := ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) ([]role.Change, error) {
		return tx.RoleChanges().List(ctx, db)
	})
	for i := range list {
		list[i].Verifier, list[i].Sealed = "", nil
	}
	return list, err
}

// EndedChange is a change that an operator has ended, and what was found at its login.
type EndedChange struct {
	role.Change
	Found role.Observation
}

// observation looks at the login of a change. Where its server is gone, it looks at that.
func (o *Overrides) observation(ctx context.Context, job changeJob, order operation.Order) (role.Observation, error) {
	if order.ServerGone {
		return role.Unseen, o.base.CheckGone(ctx, job.record.ServerID)
	}
	agent, err := o.base.AgentOf(ctx, job.record.ServerID)
	if err != nil {
		return "", err
	}
	seen, err := o.lookBeforeEnd(ctx, agent, job, func(role.Observation) bool { return true })
	if err != nil {
		return seen, fault.Wrap(err, fault.AgentError, "the login cannot be looked at, so the change is still pending: %s%s", err,
			base.OrGone)
	}
	return seen, o.base.CheckThere(ctx, job.record.ServerID, base.OrGone)
}

// EndChange ends a pending change after a look at its login, so that the database is free for others. The password that the
// server has stored is the one that is kept: the new one of a rotation that got so far, otherwise the current one. If neither
// lets anybody in, the login can be rotated again.
//
// VALIDATION_ERROR on "reason" or "serverGone". OPERATION_NOT_FOUND. MANAGED_ROLE_CONFLICT, or the code that the database's
// model has for it: the change has ended. AGENT_ERROR: the login could not be looked at, and the change is still pending.
func (o *Overrides) EndChange(
	ctx context.Context, db id.DatabaseID, change id.OperationID, order operation.Order,
) (EndedChange, error) {
	if err := order.Check(); err != nil {
		return EndedChange{}, err
	}
	job, err := o.loadChange(ctx, role.Change{ID: change, DatabaseID: db})
	if err != nil {
		return EndedChange{}, base.NotFound(err, fault.New(fault.OperationNotFound, "no such change of this database"))
	}
	if _, err := job.change.Status.Decide(role.Declined); err != nil {
		return EndedChange{}, role.ModelOf(job.record.RoleModel).Refusal(err)
	}
	seen, err := o.observation(ctx, job, order)
	if err != nil {
		return EndedChange{}, err
	}
	v := verdict{actor: audit.Operator, entry: endDetails(job.change, seen, order.Reason)}
	v.change, v.role = job.change.CutShort(seen)
	v.entry["operator"] = order.By
	v.refusal = "ended by an operator: " + order.Reason
	ended, err := o.endChange(ctx, job, v)
	if err != nil {
		return EndedChange{}, err
	}
	ended.change.Verifier, ended.change.Sealed = "", nil
	return EndedChange{Change: ended.change, Found: seen}, nil
}
