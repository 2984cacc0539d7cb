package roles

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// LegacyRoles keeps the additional logins of databases with a single login, which an operator has activated (spec, section
// "Additional roles for existing databases"). What is not here they have in common with those of managed databases. Every
// refusal is LEGACY_ROLE_CONFLICT where that of a managed database is MANAGED_ROLE_CONFLICT.
type LegacyRoles struct{ *Roles }

// NewLegacy makes the use cases.
func NewLegacy(p *plane.Plane) LegacyRoles { return LegacyRoles{&Roles{&driver{p}, role.LegacyRoles}} }

// OptIn makes the overlay that additional roles stand on, or goes on making it. A reserved one has work left: the request can be
// repeated. An active one stays so; what its server has lost of it, by being restored or by an administrator, is made again.
//
// FORBIDDEN: a developer or viewer. LEGACY_ROLE_CONFLICT: the database's state forbids it. AGENT_ERROR: the server has not
// answered, or cannot do it; the overlay stays reserved, which keeps nothing else from the database.
func (l LegacyRoles) OptIn(ctx context.Context, reached access.Reached) (overlay database.Overlay, err error) {
	release, err := reached.PermitCall(ctx, l.plane, account.Configure, l.model.Gate)
	if err != nil {
		return overlay, err
	}
	defer release()
	record, err := l.reserveOverlay(ctx, reached)
	if err != nil {
		return overlay, err
	}
	ctx, cancel := l.plane.Patient(ctx)
	defer cancel()
	if record.OverlayStatus == database.OverlayActive {
		again := record
		again.OverlayID = plane.NewID[id.OperationID](l.plane.Entropy) // a command that was done is not done twice
		if err := l.tellOverlay(ctx, again); err != nil {
			l.logOverlay(ctx, "overlay.unconfirmed", again, reached, err)
		}
		return record.Overlay, nil
	}
	l.plane.Crash(optInSteps.reserved)
	if err := l.tellOverlay(ctx, record); err != nil {
		l.logOverlay(ctx, "overlay.unconfirmed", record, reached, err)
		if command.RefusedFor(err, command.ReasonUnavailable) {
			return record.Overlay, nil
		}
		return overlay, l.model.Refusal(unconfirmed(err, "the opt-in",
			"the database server could not make the group roles: its operator has to look at it"))
	}
	l.plane.Crash(optInSteps.confirmed)
	if record, err = l.commitOverlay(ctx, reached); err != nil {
		return overlay, err
	}
	l.plane.Crash(optInSteps.committed)
	return record.Overlay, nil
}

// reserveOverlay commits the intent, or finds it.
func (l LegacyRoles) reserveOverlay(ctx context.Context, reached access.Reached) (record database.Record, err error) {
	err = l.updateReached(ctx, reached, func(ctx context.Context, tx ports.Tx, s role.Scene) error {
		record = s.Database
		cell, err := s.AdmitsOptIn()
		if err != nil || cell.Next == record.OverlayStatus {
			return err
		}
		record.RoleGeneration++
		record.Overlay = database.Overlay{
			OverlayID: plane.NewID[id.OperationID](l.plane.Entropy), OverlayStatus: cell.Next,
			OverlayGeneration: record.RoleGeneration,
		}
		return tx.Databases().Save(ctx, record)
	})
	return record, err
}

func (l LegacyRoles) tellOverlay(ctx context.Context, record database.Record) error {
	agent, err := l.plane.AgentOf(ctx, record.ServerID)
	if err != nil {
		return err
	}
	return ports.Tell(ctx, agent, ports.Fence{OperationID: record.OverlayID}, command.EnsureOverlay{DatabaseID: record.ID})
}

// commitOverlay stores that the overlay stands.
func (l LegacyRoles) commitOverlay(ctx context.Context, reached access.Reached) (record database.Record, err error) {
	ctx, cancel := l.plane.Settling(ctx)
	defer cancel()
	err = l.plane.UpdateReached(ctx, reached.Record().ID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		record = locked
		cell, err := record.OverlayStatus.Decide(database.Stood)
		if err != nil || cell.Next == record.OverlayStatus {
			return err
		}
		record.OverlayStatus = cell.Next
		if err := tx.Databases().Save(ctx, record); err != nil {
			return err
		}
		return l.plane.Audit(ctx, tx, record, reached.Caller().Actor(), audit.OverlayActive,
			audit.Details{"overlayId": string(record.OverlayID)})
	})
	if err == nil {
		l.logOverlay(ctx, "overlay.active", record, reached, nil)
	}
	return record, err
}

func (l LegacyRoles) logOverlay(ctx context.Context, what string, of database.Record, reached access.Reached, err error) {
	l.plane.Journal.Log(ctx, ports.JournalEvent{
		What: what, DatabaseID: of.ID, OperationID: of.OverlayID, RequestID: reached.Caller().RequestID, Err: err,
	})
}

// Delete removes a role, and revokes it before if it is ready. Errors as for Roles.Delete; ROLE_DEPENDENCIES comes without the
// list.
func (l LegacyRoles) Delete(ctx context.Context, reached access.Reached, of id.RoleID) (Removal, error) {
	return l.remove(ctx, reached, of, role.Delete, false)
}

// Reconcile finds out what has become of the last step of a role, whose answer was lost, and stores that. It asks the server
// whether the step is done, and never has it do one: what was not done is still to be asked for, and a change that is pending
// goes on as such.
//
// FORBIDDEN. ROLE_NOT_FOUND: also of a role whose removal turns out to be done. AGENT_ERROR: the server could not be asked.
func (l LegacyRoles) Reconcile(ctx context.Context, reached access.Reached, of id.RoleID) (_ State, err error) {
	defer l.ended(&err)
	release, err := reached.PermitCall(ctx, l.plane, account.Configure, l.model.Gate)
	if err != nil {
		return State{}, err
	}
	defer release()
	ctx, cancel := l.plane.Patient(ctx)
	defer cancel()
	setup, change, err := l.lastStep(ctx, reached, of)
	switch {
	case err != nil:
		return State{}, err
	case change.change.ID != "":
		err = l.reconcileChange(ctx, change)
	case settingUp(setup.role):
		err = l.reconcileSetup(ctx, setup)
	}
	if err != nil && !fault.Has(err, fault.ManagedRoleConflict) { // somebody else has overtaken it: what is so now, is read below
		return State{}, err
	}
	setup, _, err = l.lastStep(ctx, reached, of)
	return setup.state(), err
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

// reconcileSetup takes over a step that the server has done.
func (l LegacyRoles) reconcileSetup(ctx context.Context, j setup) error {
	event := setupSteps[j.role.Status].event
	done, err := l.done(ctx, j.record, j.role.SetupID, setupCommand(event, j.role, ""), j.role.Username)
	if err != nil || !done {
		return err
	}
	if j, err = l.commitSetup(ctx, j, event); err == nil {
		l.logSetup(ctx, "role.reconciled", j, nil)
	}
	return err
}

// reconcileChange takes over a change that the server has done: sent again, its command has the answer that was lost.
func (l LegacyRoles) reconcileChange(ctx context.Context, j changeJob) error {
	sent := command.Command(command.ChangeLogin{Want: j.change.Kind})
	if j.change.Kind == role.Removal {
		sent = command.RemoveRole{}
	}
	done, err := l.done(ctx, j.record, j.change.ID, sent, j.change.Username)
	if err == nil && done {
		_, err = l.drive(ctx, j)
	}
	return err
}

// done asks the server whether it has done a step of an operation.
func (l LegacyRoles) done(
	ctx context.Context, record database.Record, operation id.OperationID, of command.Command, username string,
) (bool, error) {
	agent, err := l.plane.AgentOf(ctx, record.ServerID)
	if err != nil {
		return false, err
	}
	outcome, err := ports.Ask(ctx, agent, command.ReadOutcome{
		DatabaseID: record.ID, Username: username, OperationID: operation, Step: command.Step(of),
	})
	if err != nil {
		return false, fault.Wrap(err, fault.AgentError, "the database server could not be asked what has become of the step")
	}
	return outcome.Done, nil
}
