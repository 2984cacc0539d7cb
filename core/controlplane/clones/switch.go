package clones

import (
	"context"
	"errors"

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
// a closing came too late, it is so here.
func (t turn) switchOver(ctx context.Context) (work.Next, error) {
	if t.stage != clone.Switching {
		if err := t.enter(ctx, clone.Completed, nil, nil); err != nil {
			return work.Next{}, err
		}
	}
	var switched command.Switched
	err := t.Call(ctx, "switch", func(ctx context.Context, f ports.Fence) (err error) {
		switched, err = ports.Do(ctx, t.agent, f, command.Switch{DatabaseID: t.record.ID, Open: true})
		return err
	})
	switch {
	case err == nil:
		return t.switched(ctx, switched)
	case command.RefusedFor(err, command.ReasonBusy) && t.of.Attempts >= restore.MostSwitches,
		base.RefusedForGood(err):
		return t.fail(ctx, fault.Wrap(err, fault.AgentError,
			"the database server could not put the copy in its place; nothing is left of the clone"))
	}
	return work.Next{}, err
}

// switched commits that the copy is the clone, with its size.
func (t turn) switched(ctx context.Context, s command.Switched) (work.Next, error) {
	err := t.enter(ctx, clone.Switched, nil, func(ctx context.Context, tx ports.Tx) error {
		return t.update(ctx, tx, func(stored *database.Record) error {
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

func (t turn) update(ctx context.Context, tx ports.Tx, change func(*database.Record) error) error {
	stored, err := tx.Databases().Lock(ctx, t.record.ID)
	if err == nil {
		err = change(&stored)
	}
	if err != nil {
		return err
	}
	return tx.Databases().Save(ctx, stored)
}

// settle has given up what only the making needed, a file too, and the owner's log-in proved. A refusal for good, or one each
// time, changes nothing about the clone, which is whole and equal: its owner may even have set another password by now, or use
// all connections that it has.
func (t turn) settle(ctx context.Context) (work.Next, error) {
	spec, err := provision.Spec(ctx, t.c.base, t.record)
	if err != nil {
		return work.Next{}, err
	}
	for _, s := range []struct {
		call string
		told command.Returning[command.None]
	}{{"discard", command.Discard{DatabaseID: t.record.ID}}, {"prove", spec}} {
		err := t.Call(ctx, s.call, func(ctx context.Context, f ports.Fence) error { return ports.Tell(ctx, t.agent, f, s.told) })
		var answer *command.Refusal
		switch {
		case base.RefusedForGood(err), errors.As(err, &answer) && t.of.Attempts >= restore.MostSwitches:
			t.Log("clone."+s.call+"_refused", err)
		case err != nil:
			return work.Next{}, err
		}
	}
	return t.Finish(ctx, t.succeeded())
}

func (t turn) succeeded() work.Ending {
	e := t.ending(operation.Succeed, audit.CloneFinished, audit.Details{"status": "succeeded"},
		func(ctx context.Context, tx ports.Tx) error {
			err := t.update(ctx, tx, func(stored *database.Record) error {
				cell, err := stored.Status.Decide(database.Created)
				stored.Status = cell.Next
				return err
			})
			if err != nil {
				return err
			}
			return t.c.base.Audit(ctx, tx, t.record, t.of.Actor, audit.DatabaseCreated, audit.Details{
				"name": t.record.Name, "roleModel": string(t.record.RoleModel), "clonedFrom": string(t.source.ID),
			})
		})
	e.Result = operation.Encode(clone.Result{
		DatabaseID: t.record.ID, Name: t.record.Name, Notes: append([]string{}, t.Input.Notes...),
	})
	return e
}
