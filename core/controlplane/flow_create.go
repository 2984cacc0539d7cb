package controlplane

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// create makes the database that its record describes. The agent's command is declarative: after a crash the same command is
// sent again, with the same logins and verifiers, and the agent continues from what it finds.
func (w *Worker) create(ctx context.Context, h *held) error {
	record, spec, err := w.databaseSpec(ctx, h.operation())
	if err != nil {
		return err
	}
	site, agent, err := w.serverOf(ctx, record.ServerID)
	if err != nil {
		return err
	}
	if cause := h.failure(); record.Status == database.Error && cause != nil {
		return w.clear(ctx, h, agent, record, cause)
	}
	fence, err := h.fence()
	if err != nil {
		return err
	}
	err = h.sent(agent.EnsureDatabase(ctx, fence, spec))
	if h.untouched(err) {
		return w.createElsewhere(ctx, h, record, err)
	}
	w.noteAnswer(ctx, site, err)
	switch {
	case err == nil:
		w.Crash(CrashCreateConfirmed)
		return w.created(ctx, h, record, database.Created)
	case refusedForGood(err):
		return w.giveUp(ctx, h, agent, record, createRefusal(err))
	default:
		return err
	}
}

// databaseSpec reads back what was committed before the agent first heard of the database.
func (w *Worker) databaseSpec(ctx context.Context, o operation.Operation) (database.Record, ports.DatabaseSpec, error) {
	var record database.Record
	var logins []ports.LoginSecret
	err := w.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if record, err = ofOperation(ctx, tx, o); err != nil {
			return err
		}
		logins, err = tx.Logins().List(ctx, o.DatabaseID)
		return err
	})
	if err != nil {
		return record, ports.DatabaseSpec{}, err
	}
	spec := ports.DatabaseSpec{
		ID: record.ID, Name: record.Name, RoleModel: record.RoleModel, ConnectionCap: record.ConnectionCap,
	}
	for _, l := range logins {
		password, err := w.Secrets.Open(l.Sealed, l.Context())
		if err != nil {
			return record, spec, err
		}
		spec.Logins = append(spec.Logins, ports.LoginSpec{
			Login: l.Login, Username: l.Username, Verifier: l.Verifier, Password: string(password),
		})
	}
	return record, spec, nil
}

// created commits a database that the agent has proven.
func (w *Worker) created(ctx context.Context, h *held, record database.Record, e database.Event) error {
	err := h.finish(ctx, record.Name, ending{
		on: operation.Succeed, also: func(ctx context.Context, tx ports.Tx) error {
			return w.move(ctx, tx, h.op, e, audit.DatabaseCreated, auditCreated(record))
		},
	})
	if err == nil {
		w.Crash(CrashCreateCommitted)
	}
	return err
}

// giveUp records that the database will not be created.
func (w *Worker) giveUp(
	ctx context.Context, h *held, agent ports.Agent, record database.Record, cause *fault.Error,
) error {
	err := h.beginFailing(ctx, "clearing", cause, func(ctx context.Context, tx ports.Tx) error {
		details := audit.Details{"code": string(cause.Code), "reason": cause.Message}
		return w.move(ctx, tx, h.op, database.CreateFailed, audit.DatabaseCreateFail, details)
	})
	if err != nil {
		return err
	}
	w.Crash(CrashCreateClearing)
	return w.clear(ctx, h, agent, record, cause)
}

// clear has the agent remove what was begun, then forgets the database. If the agent finds it complete, it is kept.
func (w *Worker) clear(
	ctx context.Context, h *held, agent ports.Agent, record database.Record, cause *fault.Error,
) error {
	fence, err := h.fence()
	if err != nil {
		return err
	}
	switch err := agent.Close(ctx, fence); {
	case ports.RefusedFor(err, ports.ReasonCompleted):
		return w.created(ctx, h, record, database.FoundWhole)
	case err != nil:
		return err
	}
	w.Crash(CrashCreateCleared)
	return w.forget(ctx, h, record, cause)
}

// forget removes the record of a database of which nothing exists on a server, which frees its name and its place in the quota.
func (w *Worker) forget(ctx context.Context, h *held, record database.Record, cause *fault.Error) error {
	return h.finish(ctx, record.Name, ending{
		on: operation.Fail, cause: cause, also: func(ctx context.Context, tx ports.Tx) error {
			return tx.Databases().Remove(ctx, record.ID)
		},
	})
}

// move applies an event to the database of an operation and writes it into the activity log.
func (w *Worker) move(
	ctx context.Context, tx ports.Tx, o operation.Operation, e database.Event, what audit.Action, details audit.Details,
) error {
	record, err := tx.Databases().Lock(ctx, o.DatabaseID)
	if err != nil {
		return err
	}
	cell, err := record.Status.Decide(e)
	if err != nil {
		return err
	}
	record.Status = cell.Next
	if err := tx.Databases().Save(ctx, record); err != nil {
		return err
	}
	return w.audit(ctx, tx, record, o.Actor, what, details)
}

// refusedForGood reports whether the agent's refusal is permanent. ReasonUnavailable and ReasonNoRoute are temporary.
func refusedForGood(err error) bool {
	var r *ports.AgentRefusal
	if !errors.As(err, &r) {
		return false
	}
	switch r.Reason {
	case ports.ReasonNameTaken, ports.ReasonConflict, ports.ReasonClosed, ports.ReasonInvalid, ports.ReasonFailed,
		ports.ReasonNotFound, ports.ReasonStorageFull, ports.ReasonStale:
		return true
	case ports.ReasonFenced, ports.ReasonCompleted, ports.ReasonUnavailable, ports.ReasonNoRoute,
		ports.ReasonConnectRequired, ports.ReasonDatabaseClosed:
		return false
	}
	return false
}

func createRefusal(err error) *fault.Error {
	if ports.RefusedFor(err, ports.ReasonNameTaken) {
		return fault.Invalid("name", "is taken")
	}
	return fault.Wrap(err, fault.AgentError, "the database server could not make the database; nothing is left of it")
}
