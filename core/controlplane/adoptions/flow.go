package adoptions

import (
	"context"
	"encoding/json"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/adoption"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Kind is the kind of the operations that adopt databases.
const Kind operation.Kind = "adopt"

func (a *Adoptions) register() {
	work.RegisterStaged(a.base.Work, work.Staged[adoption.Input]{
		Kind: work.Kind[adoption.Input]{
			Spec:     operation.Spec{Kind: Kind, Right: account.Own},
			Withdraw: forget,
			Calls:    []string{"account", "access", "close"},
			Commits:  []string{"generation", string(stage.Failing), "succeeded", "failed"},
		},
		Machine: adoption.Machine, Begun: adoption.Taking,
		Begin: func(_ context.Context, t *work.Turn[adoption.Input]) (work.Steps, error) { return turn{t, a}, nil },
	})
}

// turn is one step of an adoption.
type turn struct {
	*work.Turn[adoption.Input]
	a *Adoptions
}

// Do implements work.Steps: the agent is told whose the database is, and has to carry out a command for it. Customers see nothing
// of that: who could log in still can, under a generation of this record.
func (t turn) Do(ctx context.Context, s stage.Stage) (work.Next, error) {
	t.Stage = s
	t.Progress(string(s), 0)
	err := t.Call(ctx, "account", func(ctx context.Context, _ ports.Fence) error {
		owner := database.Ownership{DatabaseID: t.Record.ID, AccountID: t.Record.AccountID}
		_, err := ports.Ask(ctx, t.Agent, command.SetAccounts{Databases: []database.Ownership{owner}})
		return err
	})
	if err == nil && t.Input.Fate != adoption.Deleted && t.Input.Fate != adoption.Lost {
		err = base.SendAccess(ctx, t.Lease, t.Agent, command.SetAccess{
			DatabaseID: t.Record.ID, Open: t.Input.Open, Generation: t.Input.Generation,
		}, func(generation int64) json.RawMessage {
			t.Input.Generation = generation
			return operation.Encode(t.Input)
		})
	}
	switch {
	case base.RefusedForGood(err) && !base.Superseded(err):
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError, "the server does not carry out a command for the database: %s",
			base.WhyRefused(err)))
	case err != nil:
		return work.Next{}, err
	}
	next, err := t.Finish(ctx, t.Ending(operation.Succeed, nil))
	if err == nil && t.Input.Fate != adoption.Serves {
		t.a.deletion.Begun()
	}
	return next, err
}

// Ending implements work.Steps. Where it succeeds, the record is as the server has the database, and what is to be deleted is
// queued to be; otherwise there is no record any more.
func (t turn) Ending(on operation.Event, cause *fault.Error) work.Ending {
	details := audit.Details{"operationId": string(t.Of.ID), "fate": string(t.Input.Fate), "name": t.Record.Name}
	if on != operation.Succeed {
		return work.Ending{On: on, Cause: cause, DatabaseName: t.Record.Name, Also: func(ctx context.Context, tx ports.Tx) error {
			what := audit.OperationCanceled
			if cause != nil {
				what, details["code"] = audit.AdoptFailed, string(cause.Code)
			}
			if err := forget(ctx, tx, t.Of); err != nil {
				return err
			}
			return t.a.base.Audit(ctx, tx, t.Record, t.Of.Actor, what, details)
		}}
	}
	return work.Ending{
		On: on, DatabaseName: t.Record.Name, Result: operation.Encode(adoption.Result{Notes: t.Input.Notes}),
		Also: func(ctx context.Context, tx ports.Tx) error {
			locked, err := tx.Databases().Lock(ctx, t.Record.ID)
			if err != nil {
				return err
			}
			if locked.Status, err = t.status(locked.Status); err != nil {
				return err
			}
			if err := tx.Databases().Save(ctx, locked); err != nil {
				return err
			}
			if err := t.a.base.Audit(ctx, tx, locked, t.Of.Actor, audit.DatabaseAdopted, details); err != nil {
				return err
			}
			return t.drop(ctx, tx, locked)
		},
	}
}

// status is that of the record as the server has the database.
func (t turn) status(now database.Status) (database.Status, error) {
	events := []database.Event{database.Created}
	switch {
	case t.Input.Fate == adoption.Lost: // of which its deletion makes one without anything to recover
		events = []database.Event{database.CreateFailed}
	case t.Input.Fate != adoption.Deleted && !t.Input.Open:
		events = append(events, database.Stop)
	}
	for _, e := range events {
		cell, err := now.Decide(e)
		if err != nil {
			return now, err
		}
		now = cell.Next
	}
	return now, nil
}

// drop queues the deletion of a database that does not go on as it is.
func (t turn) drop(ctx context.Context, tx ports.Tx, locked database.Record) error {
	if t.Input.Fate == adoption.Serves {
		return nil
	}
	_, err := t.a.deletion.BeginOrdered(ctx, tx, locked, deletion.Ordered{
		By: t.Input.By, Reason: t.Input.Reason, Isolated: t.Input.Fate == adoption.Deleted,
		Bare: t.Input.Fate == adoption.Bare || t.Input.Fate == adoption.Lost,
	})
	return err
}

// forget removes the record of a database that was not adopted, which stays on its server as it is.
func forget(ctx context.Context, tx ports.Tx, o operation.Operation) error {
	return base.NotFound(tx.Databases().Remove(ctx, o.DatabaseID), nil)
}
