package deletion

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/ports"
)

func (d *Deletion) registerDelete() {
	work.Register(d.base.Work, work.Kind[deletion.Input]{
		Spec: operation.Spec{
			Kind: deletion.KindDelete, Public: true, Right: account.Own, Cancelable: deletion.Cancelable,
		},
		Step:     d.step,
		GiveUp:   d.giveUp,
		Withdraw: d.withdrawn,
		Calls:    []string{"access", "backup", "isolate", "undo", "close"},
		Commits: []string{
			"generation", string(deletion.BackingUp), string(deletion.Isolating), string(deletion.Failing),
			string(deletion.Canceling), "lost", "succeeded", "failed", "canceled",
		},
	})
}

// turn is one step of a deletion, with what it is about.
type turn struct {
	*work.Job[deletion.Input]
	d      *Deletion
	agent  ports.Agent
	record database.Record
	of     operation.Operation
	stage  deletion.Stage
}

func (d *Deletion) step(ctx context.Context, job *work.Job[deletion.Input]) (next work.Next, err error) {
	t := turn{Job: job, d: d, of: job.Operation()}
	if t.stage = deletion.Of(t.of); t.stage == deletion.Queued {
		t.stage = deletion.Closing // a worker has it: the agent may have heard of it
	}
	if t.record, t.agent, err = d.base.DatabaseAndAgent(ctx, t.of); err != nil {
		return next, err
	}
	if t.of.CancelRequested && deletion.Cancelable(t.of) {
		return t.cancel(ctx)
	}
	cell, err := t.stage.Decide(deletion.Advance)
	if err != nil {
		return next, err
	}
	switch cell.Next { //nolint:exhaustive // the others are no stages that a step leads to
	case deletion.Closing:
		return t.shut(ctx)
	case deletion.BackingUp:
		return t.backUp(ctx)
	case deletion.Isolating:
		return t.isolate(ctx)
	case deletion.Failing:
		return t.reopen(ctx, t.failed(t.Failure()))
	case deletion.Canceling:
		return t.cancel(ctx)
	}
	return next, fault.New(fault.InternalError, "a deletion has no step from %s to %s", t.stage, cell.Next)
}

// enter commits the stage to which an event leads, with the cause of one in which the deletion fails.
func (t *turn) enter(ctx context.Context, on deletion.Event, cause *fault.Error) error {
	cell, err := t.stage.Decide(on)
	if err != nil {
		return err
	}
	s := cell.Next
	err = t.Save(ctx, string(s), func(o *operation.Operation) {
		o.Enter(string(s), cause)
		o.Input = operation.Encode(t.Input)
	}, nil)
	if err == nil {
		t.stage = s
	}
	return err
}

// next commits a stage whose work is done by the next step.
func (t turn) next(ctx context.Context, on deletion.Event) (work.Next, error) {
	return work.Again(0), t.enter(ctx, on, nil)
}

// shut has the agent let nobody in any more, and end all sessions.
func (t turn) shut(ctx context.Context) (work.Next, error) {
	t.Progress(string(deletion.Closing), 0)
	err := base.SendAccess(ctx, t.Lease, t.agent, command.SetAccess{
		DatabaseID: t.record.ID, Generation: t.Input.Generation, Disconnect: true,
	}, func(generation int64) json.RawMessage {
		t.Input.Generation = generation
		return operation.Encode(t.Input)
	})
	switch {
	case command.RefusedFor(err, command.ReasonNotFound) && t.Input.From == database.Error:
		t.Input.Filename, t.Input.Made = "", nil
		return t.conclude(ctx)
	case base.RefusedForGood(err) && !base.Superseded(err):
		return t.fail(ctx, fault.Wrap(err, fault.AgentError, "the database server could not close the database"))
	case err != nil:
		return work.Next{}, err
	case t.Input.Filename == "":
		return t.next(ctx, deletion.ShutBare)
	}
	if err := base.TellAccount(ctx, t.agent, t.record); err != nil {
		return work.Next{}, err
	}
	return t.next(ctx, deletion.Shut)
}

// backUp has the agent make and verify the file that the database could be recovered from. It keeps sending the same command, as
// for a backup.
func (t turn) backUp(ctx context.Context) (work.Next, error) {
	var report command.BackupReport
	err := t.Call(ctx, "backup", func(ctx context.Context, f ports.Fence) (err error) {
		report, err = ports.Do(ctx, t.agent, f, command.Backup{
			DatabaseID: t.record.ID, Filename: t.Input.Filename, Verify: true, ForDeletion: true,
		})
		return err
	})
	gone := command.RefusedFor(err, command.ReasonNotFound) ||
		err == nil && report.State == command.BackupFailed && report.Reason == command.ReasonNotFound
	switch {
	case gone && t.Input.From == database.Error:
		t.Input.Filename = ""
		return t.next(ctx, deletion.Missing)
	case gone:
		t.Input.Missing = true
		return t.fail(ctx, fault.New(fault.AgentError, "the database server has no such database any more"))
	case base.RefusedForGood(err):
		return t.fail(ctx, backupFailed(command.BackupReport{State: command.BackupFailed, Reason: base.ReasonShown(err)}))
	case err != nil:
		return work.Next{}, err
	case report.State == command.BackupRunning:
		t.Progress(string(deletion.BackingUp), min(report.Progress, almost))
		t.Moved(report.Bytes)
		return work.Again(t.PollAfter(report.Stage == operation.StageQueued)), nil
	case report.State != command.BackupDone || report.VerifiedAt == nil:
		return t.fail(ctx, backupFailed(report))
	}
	t.Input.Made = &deletion.Made{
		SizeBytes: report.SizeBytes, ChecksumSHA256: report.ChecksumSHA256, ManifestSHA256: report.ManifestSHA256,
		VerifiedAt: report.VerifiedAt, RoleManifest: report.RoleManifest,
	}
	t.Progress(string(deletion.Isolating), almost)
	return t.next(ctx, deletion.BackedUp)
}

// almost is the progress of a deletion whose backup is whole.
const almost = 95

func backupFailed(r command.BackupReport) *fault.Error {
	code, message := fault.AgentError, "the database server could not make the deletion backup"
	switch {
	case r.State != command.BackupFailed:
		code, message = fault.BackupNotVerified, "the deletion backup did not come back equal to the database"
	case r.Reason == command.ReasonStorageFull:
		code, message = fault.BackupStorageFull, "the database server has no room for the deletion backup"
	}
	return fault.New(code, "%s", cmp.Or(r.Message, message))
}

// isolate has the agent take the database out of service. The intent is committed.
func (t turn) isolate(ctx context.Context) (work.Next, error) {
	err := t.Call(ctx, "isolate", func(ctx context.Context, f ports.Fence) error {
		return ports.Tell(ctx, t.agent, f, command.Isolate{DatabaseID: t.record.ID})
	})
	switch {
	case err == nil:
		return t.conclude(ctx)
	case command.RefusedFor(err, command.ReasonNotFound) && t.Input.Filename == "": // PostgreSQL has lost it: nothing is to be kept
		return t.conclude(ctx)
	case command.RefusedFor(err, command.ReasonBusy) && t.of.Attempts >= restore.MostSwitches, base.RefusedForGood(err):
		return t.fail(ctx, fault.Wrap(err, fault.AgentError, "the database server could not take the database out of service: %s",
			base.MessageShown(err)))
	}
	return work.Next{}, err
}
