package roles

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// setUp takes a role that is being created to its goal, sql_ready or ready, step by step, even if the caller disconnects.
func (r *Roles) setUp(ctx context.Context, j setup, goal role.Status) (State, error) {
	ctx, cancel := r.base.Patient(ctx)
	defer cancel()
	for settingUp(j.role) && j.role.Status != goal {
		step := setupSteps[j.role.Status]
		r.base.Crash(step.points.reserved)
		if err := r.tellSetup(ctx, j, step.event); err != nil {
			r.logSetup(ctx, "role.unconfirmed", j, err)
			return State{}, err
		}
		r.base.Crash(step.points.confirmed)
		next, err := r.commitSetup(ctx, j, step.event)
		if err != nil {
			return State{}, err
		}
		r.logSetup(ctx, step.done, next, nil)
		r.base.Crash(step.points.committed)
		j = next
	}
	return j.state(), nil
}

// setupStep is one transition of the flow reserved, sql_ready, ready.
type setupStep struct {
	event  role.Event
	points steps
	done   string // event in the journal
}

var setupSteps = map[role.Status]setupStep{ //nolint:exhaustive // in every other status the role is made
	role.Reserved: {role.Prepare, prepareSteps, "role.prepared"},
	role.SQLReady: {role.Admit, admitSteps, "role.admitted"},
}

func settingUp(r role.Role) bool { _, half := setupSteps[r.Status]; return half }

// tellSetup has the server take a step. Its errors are shown to the caller.
func (r *Roles) tellSetup(ctx context.Context, j setup, step role.Event) error {
	agent, err := r.base.AgentOf(ctx, j.record.ServerID)
	if err != nil {
		return err
	}
	var password []byte
	if step == role.Admit {
		if password, err = r.base.Secrets.Open(j.role.Sealed, j.role.SecretContext()); err != nil {
			return err
		}
	}
	return r.sendSetup(ctx, agent, j, func(of role.Role) error {
		return ports.Tell(ctx, agent, ports.Fence{OperationID: of.SetupID}, setupCommand(step, of, string(password)))
	})
}

func setupCommand(step role.Event, of role.Role, password string) command.Returning[command.None] {
	if step == role.Prepare {
		return command.PrepareRole{
			DatabaseID: of.DatabaseID, Username: of.Username, Generation: of.Generation,
			AccessProfile: of.AccessProfile, ConnectionLimit: of.ConnectionLimit,
		}
	}
	return admitCommand(of, password)
}

func admitCommand(of role.Role, password string) command.AdmitRole {
	return command.AdmitRole{
		DatabaseID: of.DatabaseID, Username: of.Username, Generation: of.Generation,
		AccessProfile: of.AccessProfile, ConnectionLimit: of.ConnectionLimit,
		Verifier: of.Verifier, ValidUntil: of.CredentialExpiresAt, Password: password,
	}
}

// commitSetup stores what the server has confirmed. A role that another process has taken further is left unchanged.
func (r *Roles) commitSetup(ctx context.Context, j setup, on role.Event) (setup, error) {
	ctx, cancel := r.base.Settling(ctx)
	defer cancel()
	err := r.base.UpdateReached(ctx, j.record.ID, func(ctx context.Context, tx ports.Tx, locked database.Record) (err error) {
		j.record = locked
		if j.role, err = r.livingRole(ctx, tx, j.record.ID, j.role.ID); err != nil {
			return err
		}
		if !settingUp(j.role) {
			return nil
		}
		if j.role.ChangeID != "" {
			return errBeingRemoved()
		}
		cell, err := j.role.Status.Decide(on)
		if err != nil || len(cell.Effects) == 0 {
			return err
		}
		j.role.Status = cell.Next
		if err := tx.Roles().Save(ctx, j.role); err != nil || j.role.Status != role.Ready {
			return err
		}
		return r.base.Audit(ctx, tx, j.record, j.actor, audit.RoleCreated, createdDetails(j.role))
	})
	return j, err
}

func createdDetails(r role.Role) audit.Details {
	d := roleDetails(r)
	d["displayName"], d["accessProfile"] = r.DisplayName, string(r.AccessProfile)
	d["connectionLimit"] = strconv.Itoa(r.ConnectionLimit)
	return d
}

// setupError is the caller's error for a step that the server has not confirmed; nil if it has.
func (r *Roles) setupError(ctx context.Context, j setup, err error) error {
	switch {
	case command.RefusedFor(err, command.ReasonConnectRequired):
		return connectGrantRequired(j)
	case command.RefusedFor(err, command.ReasonNameTaken):
		return errNotThisRole(err, j)
	case command.RefusedFor(err, command.ReasonAltered):
		return role.ErrAltered(err, nil)
	case command.RefusedFor(err, command.ReasonNotFound):
		return cmp.Or(r.stillCalm(ctx, j), role.ErrLost(err))
	case command.RefusedFor(err, command.ReasonIsolated):
		return cmp.Or(r.stillCalm(ctx, j), error(base.ErrOutOfService(err)))
	case command.RefusedFor(err, command.ReasonStale):
		return errChangedMeanwhile()
	}
	return unconfirmed(err, "the role", "the database server could not make the role")
}

// stillCalm is the refusal of what has come between, a deletion of the database for instance; nil: that is not why a server has
// refused.
func (r *Roles) stillCalm(ctx context.Context, j setup) error {
	ctx, cancel := r.base.Settling(ctx)
	defer cancel()
	return r.updateScene(ctx, j.record.ID, func(_ context.Context, _ ports.Tx, s role.Scene) error { return s.Calm() })
}

// unconfirmed is the caller's error for anything that the server has not confirmed; nil if it has. cannot says that the server
// has tried in vain.
func unconfirmed(err error, what, cannot string) error {
	var refusal *command.Refusal
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refusal):
		return fault.Wrap(err, fault.AgentError, "the database server has not confirmed %s: repeat the request", what)
	}
	switch refusal.Reason { //nolint:exhaustive // every other reason is a failure of the server
	case command.ReasonDatabaseClosed:
		return fault.Wrap(err, fault.ManagedRoleConflict, "the database is not active")
	case command.ReasonUnavailable:
		return fault.Wrap(err, fault.AgentError, "the database server is not available: repeat the request")
	case command.ReasonOtherProtocol:
		return fault.Wrap(err, fault.AgentError, "the database server is being updated: repeat the request later")
	}
	return fault.Wrap(err, fault.AgentError, "%s", cannot)
}

// overtaken is the error for a role whose set-up another process has ended, or taken further; nil if none has.
func (r *Roles) overtaken(ctx context.Context, j setup) error {
	ctx, cancel := r.base.Settling(ctx)
	defer cancel()
	now, err := ports.Read(ctx, r.base.Store, func(ctx context.Context, tx ports.Tx) (role.Role, error) {
		return r.livingRole(ctx, tx, j.record.ID, j.role.ID)
	})
	switch {
	case err != nil:
		return err
	case settingUp(now) && now.ChangeID != "":
		return errBeingRemoved()
	case now.Status != j.role.Status, now.Generation != j.role.Generation, now.CredentialGeneration != j.role.CredentialGeneration:
		return errChangedMeanwhile()
	}
	return nil
}

func errBeingRemoved() error {
	return fault.New(fault.ManagedRoleConflict, "the role is being removed")
}

// connectGrantRequired tells the owner which statement lets the set-up continue.
func connectGrantRequired(j setup) error {
	err := fault.New(fault.ConnectGrantRequired,
		"the role has no CONNECT on the database: run grantSql as the database's owner, then repeat the request")
	err.Extra = map[string]any{
		"databaseName": j.record.Name, "username": j.role.Username,
		"grantSql": j.role.GrantConnect(j.record.Name),
	}
	return err
}

// logSetup tells the operator of the progress of a role's creation.
func (r *Roles) logSetup(ctx context.Context, what string, j setup, err error) {
	r.base.Journal.Log(ctx, ports.JournalEvent{
		What: what, DatabaseID: j.record.ID, OperationID: j.role.SetupID, RoleID: j.role.ID, RequestID: j.requestID, Err: err,
	})
}
