package roles

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// reconcileRounds bounds the looks of one call: each finds that something has moved on since the one before.
const reconcileRounds = 4

// Reconcile finds out what has become of the last step of a role, whose answer was lost, and stores that. It looks at the server,
// and never has it do a step: what was not done is still to be asked for, and a change that is pending goes on as such.
//
// FORBIDDEN. ROLE_NOT_FOUND: also of a role whose removal turns out to be done. LEGACY_ROLE_CONFLICT: the role on the server is
// not as its status says, or may be able to log in although that is not proven; the message says what to do. AGENT_ERROR: the
// server could not be asked, or is at work on the step. AGENT_ROUTE_UNAVAILABLE: its agent cannot look.
func (l LegacyRoles) Reconcile(ctx context.Context, reached access.Reached, of id.RoleID) (_ State, err error) {
	defer l.ended(&err)
	release, err := reached.PermitCall(ctx, l.base, account.Configure, l.model.Gate)
	if err != nil {
		return State{}, err
	}
	defer release()
	ctx, cancel := l.base.Patient(ctx)
	defer cancel()
	for range reconcileRounds {
		now, settled, err := l.reconcileOnce(ctx, reached, of)
		if err != nil || settled {
			return now, err
		}
	}
	return State{}, errChangedMeanwhile()
}

// reconcileOnce makes one look. settled is false where something has changed since, or by it, so that another look is needed.
func (l LegacyRoles) reconcileOnce(
	ctx context.Context, reached access.Reached, of id.RoleID,
) (now State, settled bool, err error) {
	job, change, err := l.lastStep(ctx, reached, of)
	if err != nil {
		return now, false, err
	}
	seen, err := l.look(ctx, job, change.change)
	switch {
	case err != nil:
		return now, false, err
	case change.change.ID != "" && !seen.Done:
		return job.state(), true, nil
	case change.change.ID != "":
		o, err := l.drive(ctx, change) // sent again, its command has the answer that was lost
		return job.state(), err == nil && o.change.Open(), unlessConflict(err)
	}
	after := job
	step, err := job.role.Reconciled(seen.Done, seen.Role)
	if err == nil && step != "" {
		if after, err = l.commitSetup(ctx, job, step); err == nil {
			l.logSetup(ctx, "role.reconciled", after, nil)
		}
	}
	if err == nil {
		return after.state(), true, nil
	}
	if moved := l.overtaken(ctx, job); moved != nil {
		return now, false, unlessConflict(moved)
	}
	return now, false, err
}

// unlessConflict is err, or nil where it only says that somebody else has taken a role further.
func unlessConflict(err error) error {
	if fault.Has(err, fault.ManagedRoleConflict) {
		return nil
	}
	return err
}

// lastStep reads a role, and the change of it that has not ended.
func (l LegacyRoles) lastStep(
	ctx context.Context, reached access.Reached, of id.RoleID,
) (job setup, change changeJob, err error) {
	job = l.newSetup(reached)
	err = l.updateReached(ctx, reached, func(ctx context.Context, tx ports.Tx, s role.Scene) (err error) {
		job.record, change = s.Database, changeJob{}
		if job.role, err = l.livingRole(ctx, tx, s.Database.ID, of); err != nil || job.role.ChangeID == "" {
			return err
		}
		c, err := tx.RoleChanges().Get(ctx, s.Database.ID, job.role.ChangeID)
		if err != nil {
			return err
		}
		change, err = jobOf(ctx, tx, s.Database, c)
		return err
	})
	return job, change, err
}

// look asks the server whether the last step of a role is done, and how the role stands.
func (l LegacyRoles) look(ctx context.Context, j setup, change role.Change) (seen command.Outcome, err error) {
	question := command.ReadOutcome{
		DatabaseID: j.record.ID, Username: j.role.Username, OperationID: j.role.SetupID, Step: command.Step(lastSetup(j.role)),
		AccessProfile: j.role.AccessProfile, ConnectionLimit: j.role.ConnectionLimit, Verifier: j.role.Verifier,
	}
	if change.ID != "" {
		question.OperationID, question.Step = change.ID, command.Step(commandOf(change))
	}
	agent, err := l.base.AgentOf(ctx, j.record.ServerID)
	if err == nil {
		seen, err = ports.Ask(ctx, agent, question)
	}
	switch {
	case base.Unserved(err):
		err = fault.Wrap(err, fault.AgentRouteUnavailable, "unavailable until the agent of the database server is updated")
	case err != nil:
		err = fault.Wrap(err, fault.AgentError,
			"the database server could not be asked what has become of the step, or is still at work on it: repeat the request")
	}
	return seen, err
}

// lastSetup is the last command of a role's set-up that was sent, if any was.
func lastSetup(r role.Role) command.Command {
	if r.Status == role.Reserved {
		return command.PrepareRole{}
	}
	return command.AdmitRole{}
}

func commandOf(c role.Change) command.Command {
	if c.Kind == role.Removal {
		return command.RemoveRole{}
	}
	return command.ChangeLogin{Want: c.Kind}
}
