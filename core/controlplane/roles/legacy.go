package roles

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// LegacyRoles keeps the additional logins of databases with a single login, which an operator has activated (spec, section
// "Additional roles for existing databases"). What is not here they have in common with those of managed databases. Every
// refusal is LEGACY_ROLE_CONFLICT where that of a managed database is MANAGED_ROLE_CONFLICT.
type LegacyRoles struct{ *Roles }

// NewLegacy makes the use cases.
func NewLegacy(p *base.Base) LegacyRoles { return LegacyRoles{&Roles{&driver{p}, role.LegacyRoles}} }

// OptIn makes the overlay that additional roles stand on, or goes on making it. A reserved one has work left: the request can be
// repeated. An active one stays so, unless its server has lost it, by being restored or by an administrator: then another one is
// made in its place.
//
// FORBIDDEN: a developer or viewer. DATABASE_NOT_FOUND, LEGACY_ROLE_CONFLICT: the database's state forbids it, or has come to
// meanwhile. AGENT_ERROR: the server has not answered, or cannot do it; the overlay stays reserved, which keeps nothing else from
// the database. Or it has not enough connections free for additional roles; then nothing was changed.
func (l LegacyRoles) OptIn(ctx context.Context, reached access.Reached) (overlay database.Overlay, err error) {
	release, err := reached.PermitCall(ctx, l.base, account.Configure, l.model.Gate)
	if err != nil {
		return overlay, err
	}
	defer release()
	record, err := l.reserveOverlay(ctx, reached, "")
	if err != nil {
		return overlay, err
	}
	ctx, cancel := l.base.Patient(ctx)
	defer cancel()
	if record.OverlayStatus == database.OverlayActive {
		if record, err = l.replaceLost(ctx, reached, record); err != nil || record.OverlayStatus == database.OverlayActive {
			return record.Overlay, err
		}
	}
	return l.makeOverlay(ctx, reached, record)
}

// makeOverlay has the server carry out the intent, and stores that it has.
func (l LegacyRoles) makeOverlay(
	ctx context.Context, reached access.Reached, record database.Record,
) (overlay database.Overlay, err error) {
	l.base.Crash(optInSteps.reserved)
	if err := l.tellOverlay(ctx, record); err != nil {
		l.logOverlay(ctx, "overlay.unconfirmed", record, reached, err)
		if changed := l.stillServes(ctx, reached); changed != nil {
			return overlay, changed
		}
		if command.RefusedFor(err, command.ReasonUnfinished) {
			return record.Overlay, nil
		}
		return overlay, l.model.Refusal(unconfirmed(err, "the opt-in",
			"the database server could not make the group roles: its operator has to look at it"))
	}
	l.base.Crash(optInSteps.confirmed)
	if record, err = l.commitOverlay(ctx, reached, record.OverlayID); err != nil {
		return overlay, err
	}
	l.base.Crash(optInSteps.committed)
	return record.Overlay, nil
}

// stillServes is the refusal of what has come between, a stop or a deletion for instance; nil: that is not why a server has
// refused.
func (l LegacyRoles) stillServes(ctx context.Context, reached access.Reached) error {
	ctx, cancel := l.base.Settling(ctx)
	defer cancel()
	_, err := l.reserveOverlay(ctx, reached, "")
	return err
}

// replaceLost asks the server whether an active overlay stands, and commits the intent of another one where it does not. Where
// that cannot be seen, the overlay is taken to stand.
func (l LegacyRoles) replaceLost(
	ctx context.Context, reached access.Reached, record database.Record,
) (database.Record, error) {
	agent, err := l.base.AgentOf(ctx, record.ServerID)
	if err != nil {
		return record, err
	}
	has, err := ports.Ask(ctx, agent, command.AskRights{DatabaseID: record.ID})
	switch {
	case err == nil && has.Unread != "":
		err = errors.New(has.Unread)
	case err == nil && has.Overlay != nil && !*has.Overlay:
		return l.reserveOverlay(ctx, reached, record.OverlayID)
	case err == nil:
		return record, nil
	}
	l.logOverlay(ctx, "overlay.unconfirmed", record, reached, err)
	return record, l.stillServes(ctx, reached)
}

// reserveOverlay commits the intent, or finds it. The overlay that is named as lost is replaced.
func (l LegacyRoles) reserveOverlay(
	ctx context.Context, reached access.Reached, lost id.OperationID,
) (record database.Record, err error) {
	err = l.updateReached(ctx, reached, func(ctx context.Context, tx ports.Tx, s role.Scene) error {
		record = s.Database
		event := database.OptIn
		if lost != "" && record.OverlayID == lost {
			event = database.Lost
		}
		cell, err := s.AdmitsOptIn(event)
		if err != nil || cell.Next == record.OverlayStatus {
			return err
		}
		before := record
		record.RoleGeneration++
		record.Overlay = database.Overlay{
			OverlayID: base.NewID[id.OperationID](l.base.Entropy), OverlayStatus: cell.Next,
			OverlayGeneration: record.RoleGeneration,
		}
		if err := takeConnections(ctx, tx, before, record); err != nil {
			return err
		}
		if err := tx.Databases().Save(ctx, record); err != nil || event != database.Lost {
			return err
		}
		return l.auditOverlay(ctx, tx, reached, audit.OverlayLost, before)
	})
	return record, err
}

func (l LegacyRoles) auditOverlay(
	ctx context.Context, tx ports.Tx, reached access.Reached, what audit.Action, of database.Record,
) error {
	return l.base.Audit(ctx, tx, of, reached.Caller().Actor(), what, audit.Details{"overlayId": string(of.OverlayID)})
}

func (l LegacyRoles) tellOverlay(ctx context.Context, record database.Record) error {
	agent, err := l.base.AgentOf(ctx, record.ServerID)
	if err != nil {
		return err
	}
	return ports.Tell(ctx, agent, ports.Fence{OperationID: record.OverlayID}, command.EnsureOverlay{DatabaseID: record.ID})
}

// commitOverlay stores that an overlay stands, unless another one has replaced it meanwhile.
func (l LegacyRoles) commitOverlay(
	ctx context.Context, reached access.Reached, made id.OperationID,
) (record database.Record, err error) {
	ctx, cancel := l.base.Settling(ctx)
	defer cancel()
	err = l.base.UpdateReached(ctx, reached.Record().ID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		record = locked
		cell, err := record.OverlayStatus.Decide(database.Stood)
		if err != nil || cell.Next == record.OverlayStatus || record.OverlayID != made {
			return err
		}
		record.OverlayStatus = cell.Next
		if err := tx.Databases().Save(ctx, record); err != nil {
			return err
		}
		return l.auditOverlay(ctx, tx, reached, audit.OverlayActive, record)
	})
	if err == nil {
		l.logOverlay(ctx, "overlay.active", record, reached, nil)
	}
	return record, err
}

func (l LegacyRoles) logOverlay(ctx context.Context, what string, of database.Record, reached access.Reached, err error) {
	l.base.Journal.Log(ctx, ports.JournalEvent{
		What: what, DatabaseID: of.ID, OperationID: of.OverlayID, RequestID: reached.Caller().RequestID, Err: err,
	})
}

// Delete removes a role, and revokes it before if it is ready. Errors as for Roles.Delete; ROLE_DEPENDENCIES comes without the
// list.
func (l LegacyRoles) Delete(ctx context.Context, reached access.Reached, of id.RoleID) (Removal, error) {
	return l.remove(ctx, reached, of, role.Delete, false)
}
