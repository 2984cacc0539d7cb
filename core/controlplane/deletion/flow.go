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
	"github.com/pgherd/pgherd/core/stage"
)

func (d *Deletion) registerDelete() {
	work.RegisterStaged(d.base.Work, work.Staged[deletion.Input]{
		Kind: work.Kind[deletion.Input]{
			Spec:     operation.Spec{Kind: deletion.KindDelete, Public: true, Right: account.Own, Ends: true},
			Withdraw: d.withdrawn,
			Calls:    []string{"access", "backup", "isolate", "undo", "close"},
			Commits: []string{
				"generation", string(deletion.BackingUp), string(deletion.Isolating), string(stage.Failing),
				string(stage.Canceling), "lost", "succeeded", "failed", "canceled",
			},
		},
		Machine: deletion.Machine, Begun: deletion.Closing,
		Begin: func(_ context.Context, t *work.Turn[deletion.Input]) (work.Steps, error) { return turn{t, d}, nil },
	})
}

// turn is one step of a deletion.
type turn struct {
	*work.Turn[deletion.Input]
	d *Deletion
}

// Do implements work.Steps.
func (t turn) Do(ctx context.Context, s stage.Stage) (work.Next, error) {
	switch s {
	case deletion.Closing:
		return t.shut(ctx)
	case deletion.BackingUp:
		return t.backUp(ctx)
	}
	return t.isolate(ctx)
}

// shut has the agent let nobody in any more, and end all sessions.
func (t turn) shut(ctx context.Context) (work.Next, error) {
	t.Progress(string(deletion.Closing), 0)
	err := base.SendAccess(ctx, t.Lease, t.Agent, command.SetAccess{
		DatabaseID: t.Record.ID, Generation: t.Input.Generation, Disconnect: true,
	}, func(generation int64) json.RawMessage {
		t.Input.Generation = generation
		return operation.Encode(t.Input)
	})
	switch {
	case command.RefusedFor(err, command.ReasonNotFound) && t.Input.From == database.Error:
		t.Input.Filename, t.Input.Made = "", nil
		return t.conclude(ctx)
	case command.RefusedFor(err, command.ReasonIsolated) && t.Input.Isolated:
		return t.conclude(ctx)
	case command.RefusedFor(err, command.ReasonIsolated): // its purge would remove what no backup of this deletion has
		return t.Fail(ctx, base.ErrOutOfService(err))
	case base.RefusedForGood(err) && !base.Superseded(err):
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError, "the database server could not close the database"))
	case err != nil:
		return work.Next{}, err
	case t.Input.Isolated:
		return t.Fail(ctx, fault.New(fault.AgentError, "the database server has the database in service: delete it anew"))
	case t.Input.Filename == "":
		return t.Next(ctx, deletion.ShutBare)
	}
	return t.Next(ctx, deletion.Shut)
}

// backUp has the agent make and verify the file that the database could be recovered from. It keeps sending the same command, as
// for a backup.
func (t turn) backUp(ctx context.Context) (work.Next, error) {
	report, err := work.Send(ctx, t.Lease, "backup", t.Agent, command.Backup{
		DatabaseID: t.Record.ID, Filename: t.Input.Filename, Verify: true, ForDeletion: true,
	})
	gone := command.RefusedFor(err, command.ReasonNotFound) ||
		err == nil && report.State == command.BackupFailed && report.Reason == command.ReasonNotFound
	switch {
	case gone && t.Input.From == database.Error:
		t.Input.Filename = ""
		return t.Next(ctx, deletion.Missing)
	case gone:
		t.Input.Missing = true
		return t.Fail(ctx, fault.New(fault.AgentError, "the database server has no such database any more"))
	case base.RefusedForGood(err):
		return t.Fail(ctx, backupFailed(command.BackupReport{State: command.BackupFailed, Reason: base.ReasonShown(err)}))
	case err != nil:
		return work.Next{}, err
	case report.State == command.BackupRunning:
		return t.Running(string(deletion.BackingUp), min(report.Progress, almost), report.Bytes,
			report.Stage == operation.StageQueued)
	case report.State != command.BackupDone || report.VerifiedAt == nil:
		return t.Fail(ctx, backupFailed(report))
	}
	t.Input.Made = &deletion.Made{
		SizeBytes: report.SizeBytes, ChecksumSHA256: report.ChecksumSHA256, ManifestSHA256: report.ManifestSHA256,
		VerifiedAt: report.VerifiedAt, RoleManifest: report.RoleManifest,
	}
	t.Progress(string(deletion.Isolating), almost)
	return t.Next(ctx, deletion.BackedUp)
}

// almost is the progress of a deletion whose backup is whole.
const almost = 95

func backupFailed(r command.BackupReport) *fault.Error {
	if r.State != command.BackupFailed {
		return fault.New(fault.BackupNotVerified, "%s",
			cmp.Or(r.Message, "the deletion backup did not come back equal to the database"))
	}
	return base.JobFailed(r.Reason, r.Message, "the database server could not make the deletion backup",
		"the database server has no room for the deletion backup")
}

// isolate has the agent take the database out of service. The intent is committed.
func (t turn) isolate(ctx context.Context) (work.Next, error) {
	_, err := work.Send(ctx, t.Lease, "isolate", t.Agent, command.Isolate{DatabaseID: t.Record.ID})
	switch {
	case err == nil:
		return t.conclude(ctx)
	case command.RefusedFor(err, command.ReasonNotFound) && t.Input.Filename == "": // PostgreSQL has lost it: nothing is to be kept
		return t.conclude(ctx)
	case command.RefusedFor(err, command.ReasonBusy) && t.Of.Attempts >= restore.MostSwitches, base.RefusedForGood(err):
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError, "the database server could not take the database out of service: %s",
			base.MessageShown(err)))
	}
	return work.Next{}, err
}
