package clones

import (
	"context"
	"maps"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/ports"
)

// switchOver has the agent put the copy in the place of the empty database, and let customers in. The intent is committed; where
// a closing came too late, it is so here. Where the account was suspended meanwhile, the server hears of that first, so that the
// clone is never open.
func (t turn) switchOver(ctx context.Context) (work.Next, error) {
	if err := t.c.settings.Push(ctx, t.record.ID); err != nil {
		return work.Next{}, err
	}
	if err := t.Intend(ctx, clone.Switching); err != nil {
		return work.Next{}, err
	}
	switched, err := work.Send(ctx, t.Lease, "switch", t.at, command.Switch{DatabaseID: t.record.ID, Open: true})
	switch {
	case err == nil:
		return t.switched(ctx, switched)
	case command.RefusedFor(err, command.ReasonBusy) && t.Of.Attempts >= restore.MostSwitches,
		base.RefusedForGood(err):
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError,
			"the database server could not put the copy in its place; nothing is left of the clone"))
	}
	return work.Next{}, err
}

// switched commits that the copy is the clone, with its size.
func (t turn) switched(ctx context.Context, s command.Switched) (work.Next, error) {
	err := t.Enter(ctx, clone.Switched, func(ctx context.Context, tx ports.Tx) error {
		return base.Change(ctx, tx, t.record.ID, func(stored *database.Record) error {
			now := t.c.base.Clock.Now()
			stored.SizeBytes, stored.SizedAt = s.SizeBytes, &now
			return nil
		})
	})
	if err != nil {
		return work.Next{}, err
	}
	return t.settle(ctx)
}

// settle has given up what only the making needed, a file too, and the owner's log-in proved. A refusal for good, or one each
// time, changes nothing about the clone, which is whole and equal: its owner may even have set another password by now, or use
// all connections that it has.
func (t turn) settle(ctx context.Context) (work.Next, error) {
	if err := provision.Prove(ctx, t.c.base, t.Lease, t.at, t.record); err != nil {
		return work.Next{}, err
	}
	if t.Input.Elsewhere() {
		if err := t.leaveSource(ctx); err != nil {
			return work.Next{}, err
		}
	}
	return t.Finish(ctx, t.Ending(operation.Succeed, nil))
}

// Ending implements work.Steps: the clone's record becomes active or, as nothing of the clone is left on its server, is removed,
// which frees its name and its place in the quota.
func (t turn) Ending(on operation.Event, cause *fault.Error) work.Ending {
	e := t.Logged(on, cause, audit.CloneFinished, audit.Details{"databaseId": string(t.record.ID), "name": t.record.Name})
	if on != operation.Succeed {
		return e.After(func(ctx context.Context, tx ports.Tx) error { return tx.Databases().Remove(ctx, t.record.ID) })
	}
	e.Result = operation.Encode(clone.Result{
		DatabaseID: t.record.ID, Name: t.record.Name, At: t.Input.At, Notes: append([]string{}, t.Input.Notes...),
	})
	return e.After(func(ctx context.Context, tx ports.Tx) error {
		err := base.Change(ctx, tx, t.record.ID, func(stored *database.Record) error {
			cell, err := stored.Status.Decide(database.Created)
			stored.Status = cell.Next
			return err
		})
		if err != nil {
			return err
		}
		details := audit.Details{
			"name": t.record.Name, "roleModel": string(t.record.RoleModel), "clonedFrom": string(t.Record.ID),
		}
		maps.Copy(details, t.Input.Ordered.Details())
		return t.c.base.Audit(ctx, tx, t.record, t.Of.Actor, audit.DatabaseCreated, details)
	})
}

// withdraw removes the record of a clone that nobody has begun to make.
func (c *Clones) withdraw(ctx context.Context, tx ports.Tx, o operation.Operation) error {
	input, err := operation.Decode[clone.Input](o.Input)
	if err != nil {
		return err
	}
	return tx.Databases().Remove(ctx, input.DatabaseID)
}
