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

// failLifecycle records that an action failed. The server may have carried out a part of it: closed the gates, ended sessions.
func (w *Worker) failLifecycle(
	ctx context.Context, h *held, agent ports.Agent, action database.Event, cause *fault.Error,
) error {
	if err := h.beginFailing(ctx, "undoing", cause, nil); err != nil {
		return err
	}
	w.Crash(CrashLifecycleFailed)
	return w.undoLifecycle(ctx, h, agent, action, cause)
}

// undoLifecycle has the server open or close the database as it was before the action, and only then makes the operation
// failed: gates and record agree again. If the server refuses that for good too, the record says so, and the operation stays
// open and is tried again: the cause may be mended on the server.
func (w *Worker) undoLifecycle(
	ctx context.Context, h *held, agent ports.Agent, action database.Event, cause *fault.Error,
) error {
	was := statusBefore(action)
	// Each attempt has a generation of its own: the server takes it as newer than the failed action, whatever it stored of that.
	record, err := h.moveAccess(ctx, unchanged, func(stored int64) int64 { return stored + 1 })
	if err != nil {
		return err
	}
	fence, err := h.fence()
	if err != nil {
		return err
	}
	err = agent.SetAccess(ctx, fence, ports.AccessSpec{
		DatabaseID: record.ID, Generation: record.AccessGeneration, Open: was == database.Active,
	})
	switch {
	case ports.RefusedFor(err, ports.ReasonClosed): // by this flow, which had undone the action before
	case overtaken(err):
		return errors.Join(err, w.surpassAccess(ctx, h, err))
	case refusedForGood(err):
		h.record("lifecycle.not_undone", err)
		return errors.Join(err, w.loseAccess(ctx, h, record, cause))
	case err != nil:
		return err
	}
	w.Crash(CrashLifecycleUndone)
	if err := agent.Close(ctx, fence); err != nil {
		return err
	}
	return h.finish(ctx, record.Name, ending{on: operation.Fail, cause: cause, also: func(ctx context.Context, tx ports.Tx) error {
		if record.Status != database.Error {
			return nil
		}
		return w.move(ctx, tx, h.op, reopened[was], audit.AccessRestored, audit.Details{"status": string(was)})
	}})
}

// statusBefore is the status in which an action with an effect begins, and in which it leaves the database if it fails.
func statusBefore(action database.Event) database.Status {
	if action == database.Start {
		return database.Stopped
	}
	return database.Active
}

var reopened = map[database.Status]database.Event{ //nolint:exhaustive // what statusBefore returns
	database.Active: database.ReopenAsActive, database.Stopped: database.ReopenAsStopped,
}

// loseAccess records, once, that nobody knows who gets in.
func (w *Worker) loseAccess(ctx context.Context, h *held, record database.Record, cause *fault.Error) error {
	if record.Status == database.Error {
		return nil
	}
	return h.save(ctx, unchanged, func(ctx context.Context, tx ports.Tx) error {
		return w.move(ctx, tx, h.op, database.AccessLost, audit.AccessLost, audit.Details{"reason": cause.Message})
	})
}
