package restores

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/ports"
)

// switchOver commits the intent, and has the agent put the copy in the place of the database. From the intent on, only the
// agent's word leads back.
func (t turn) switchOver(ctx context.Context) (work.Next, error) {
	if t.Stage != restore.Switching {
		t.Input.Open = t.Record.Status == database.Active
	}
	if err := t.Intend(ctx, restore.Switching); err != nil {
		return work.Next{}, err
	}
	switched, err := work.Send(ctx, t.Lease, "switch", t.Agent, command.Switch{DatabaseID: t.Record.ID, Open: t.Input.Open})
	var no *command.Refusal
	switch {
	case err == nil:
		return t.switched(ctx, switched)
	case errors.As(err, &no) && no.Reason == command.ReasonBusy && t.Of.Attempts >= restore.MostSwitches:
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError, "%s; the database is as it was", no.Message))
	case command.RefusedFor(err, command.ReasonNotFound):
		return t.Fail(ctx, fault.Wrap(err, fault.BackupStorageFull,
			"the copy was ready and had to give way to others who needed room; the database is as it was: start another restore,"+
				" and advance it as soon as it is ready"))
	case base.RefusedForGood(err):
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError,
			"the database server refused to put the copy in the place of the database, which is as it was"))
	}
	return work.Next{}, err
}

// switched commits that the copy is the database, with its size.
func (t turn) switched(ctx context.Context, s command.Switched) (work.Next, error) {
	err := t.Enter(ctx, restore.Switched, func(ctx context.Context, tx ports.Tx) error {
		locked, err := tx.Databases().Lock(ctx, t.Record.ID)
		if err != nil {
			return err
		}
		return t.r.restored(ctx, tx, locked, s.SizeBytes)
	})
	if err != nil {
		return work.Next{}, err
	}
	return t.settle(ctx)
}

// settle has the settings set in what is now the database, and what was replaced given up. A refusal for good changes nothing
// about the restore: a periodic task sends the settings again, and an agent drops what nobody wants by itself.
func (t turn) settle(ctx context.Context) (work.Next, error) {
	err := t.Call(ctx, "settings", func(ctx context.Context, _ ports.Fence) error {
		return t.r.settings.Push(ctx, t.Record.ID)
	})
	if err := t.unlessRefused("restore.settings_refused", err); err != nil {
		return work.Next{}, err
	}
	_, err = work.Send(ctx, t.Lease, "discard", t.Agent, command.Discard{DatabaseID: t.Record.ID})
	if err := t.unlessRefused("restore.discard_refused", err); err != nil {
		return work.Next{}, err
	}
	return t.Finish(ctx, t.Ending(operation.Succeed, nil))
}

// unlessRefused is nil for a refusal for good, of which only the journal hears.
func (t turn) unlessRefused(what string, err error) error {
	if base.RefusedForGood(err) {
		t.Log(what, err)
		return nil
	}
	return err
}
