package restores

import (
	"cmp"
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Kind is the kind of the operations that restore databases in place.
const Kind operation.Kind = "restore"

func (r *Restores) register() {
	work.RegisterStaged(r.base.Work, work.Staged[restore.Input]{
		Kind: work.Kind[restore.Input]{
			Spec: operation.Spec{
				Kind: Kind, Public: true, Right: account.Own, LoginsUntilBegun: true, Driven: restore.Driven,
			},
			Calls: []string{"dump", "load", "switch", "settings", "discard", "close"},
			Commits: []string{
				string(restore.Loading), string(restore.Ready), string(restore.Switching), string(restore.Settling), string(stage.Failing),
				string(stage.Canceling), "succeeded", "failed", "canceled",
			},
		},
		Machine: restore.Machine, Begun: restore.Loading, // shown once the agent reports
		Begin: func(_ context.Context, t *work.Turn[restore.Input]) (work.Steps, error) { return turn{t, r}, nil },
		Away: func(in restore.Input, s stage.Stage) time.Duration {
			if !in.Managed {
				return 0
			}
			return restore.Away(s)
		},
	})
}

// turn is one step of a restore.
type turn struct {
	*work.Turn[restore.Input]
	r *Restores
}

// Event implements work.Steps: where a worker has a managed restore, its callers have stayed away.
func (t turn) Event() stage.Event {
	on := t.Turn.Event()
	if on == stage.Advance && t.Input.Managed && !t.ByCaller() {
		return restore.Idle
	}
	return on
}

// Do implements work.Steps.
func (t turn) Do(ctx context.Context, s stage.Stage) (work.Next, error) {
	switch s {
	case restore.Loading:
		return t.load(ctx)
	case restore.Switching:
		return t.switchOver(ctx)
	}
	return t.settle(ctx)
}

// load has the agent make the copy. It keeps sending the same command, which starts the work, takes it up after a crash of the
// agent, and reports on it.
func (t turn) load(ctx context.Context) (work.Next, error) {
	if t.Of.Stage == operation.StageQueued {
		waits, err := t.waits(ctx)
		if err != nil {
			return work.Next{}, err
		}
		if waits {
			return t.Again(work.PollMost), nil
		}
	}
	if t.Input.Bare() {
		return t.dump(ctx)
	}
	report, err := t.ask(ctx)
	switch {
	case err != nil:
		return work.Next{}, err
	case report.State == command.LoadFailed:
		return t.Fail(ctx, t.causeOf(report))
	case report.State == command.LoadReady:
		t.Input.Notes, t.Input.Change = report.Notes, report.Change
		if err := t.shrinks(); err != nil {
			return t.Fail(ctx, err)
		}
		t.Result(operation.Encode(t.result()))
		t.Progress(string(restore.Ready), almost)
		return t.Next(ctx, restore.Loaded)
	}
	return t.Running(restore.Shown(report.Stage), t.percent(report.Progress), report.Bytes, report.Stage == restore.Waiting)
}

// dump has the agent make the file of the moment, which is nobody's backup. It keeps sending the same command, as for a backup.
func (t turn) dump(ctx context.Context) (work.Next, error) {
	report, err := work.Send(ctx, t.Lease, "dump", t.Agent, command.Backup{
		DatabaseID: t.Record.ID, Filename: t.Input.Filename, Passing: true, At: t.Input.At,
	})
	switch {
	case base.RefusedForGood(err):
		return t.Fail(ctx, dumpFailed(base.RefusedBackup(err)))
	case err != nil:
		return work.Next{}, err
	case report.State == command.BackupRunning:
		return t.Running(recovery.Shown(report.Stage, backup.Dumping), t.percent(report.Progress), report.Bytes,
			report.Stage == operation.StageQueued)
	case report.State == command.BackupFailed:
		return t.Fail(ctx, dumpFailed(report))
	}
	t.Input.ManifestSHA256 = report.ManifestSHA256
	return t.Next(ctx, restore.Dumped)
}

func dumpFailed(r command.BackupReport) *fault.Error {
	return base.JobFailed(r.Reason, r.Message, "the database server could not have the database back as it was then; it is as it is",
		"the database server has no room to have the database back as it was then")
}

// percent is the progress of the whole: where a file is made first, that is the first half.
func (t turn) percent(progress int) int {
	switch {
	case t.Input.Bare():
		progress /= 2
	case t.Input.At != nil:
		progress = 50 + progress/2
	}
	return min(progress, almost)
}

// shrinks is RESTORE_SHRINKS for what nobody has confirmed. A report without a change says nothing about it.
func (t turn) shrinks() *fault.Error {
	if t.Input.Change == nil {
		return restore.Change{Unknown: true}.Refusal(t.Input.ConfirmShrink)
	}
	return t.Input.Change.Refusal(t.Input.ConfirmShrink)
}

// result is what the operation says from now on.
func (t turn) result() restore.Result {
	r := restore.Result{
		Filename: t.Input.Filename, At: t.Input.At, Notes: append([]string{}, t.Input.Notes...), Change: t.Input.Change,
		Consents: t.Input.Consents,
	}
	if r.At != nil {
		r.Filename = ""
	}
	if u := t.Input.Upload; u != nil {
		r.UploadID = u.ID
	}
	return r
}

// almost is the progress of a restore whose copy is whole.
const almost = 99

// waits reports whether a change of a login is unfinished that began before this restore did: from now on none begins. The lock
// lets one that has seen the restore queued commit first.
func (t turn) waits(ctx context.Context) (waits bool, err error) {
	err = t.r.base.UpdateDatabase(ctx, t.Record.ID, func(ctx context.Context, tx ports.Tx, _ database.Record) error {
		_, err := tx.RoleChanges().Pending(ctx, t.Record.ID)
		waits = err == nil
		return base.NotFound(err, nil)
	})
	return waits, err
}

// ask sends the command. A permanent refusal is returned as a report of failure.
func (t turn) ask(ctx context.Context) (report command.LoadReport, err error) {
	report, err = work.Send(ctx, t.Lease, "load", t.Agent, command.Load{
		DatabaseID: t.Record.ID, Compare: t.Input.Upload == nil, Source: t.source(),
	})
	if base.RefusedForGood(err) {
		return command.LoadReport{State: command.LoadFailed, Reason: base.ReasonShown(err)}, nil
	}
	return report, err
}

func (t turn) source() command.Source {
	s := command.Source{
		DatabaseID: t.Record.ID, Filename: t.Input.Filename, Passing: t.Input.At != nil, ManifestSHA256: t.Input.ManifestSHA256,
	}
	if u := t.Input.Upload; u != nil {
		s.Upload, s.SizeBytes, s.SHA256, s.MaxBytes = u.ID, u.SizeBytes, u.SHA256, u.MaxBytes
		s.AcceptIncomplete = t.Input.AcceptIncomplete
	}
	return s
}

// causeOf tells a backup or an upload that cannot be restored from a server that cannot restore it now.
func (t turn) causeOf(r command.LoadReport) *fault.Error {
	message := "the database server could not restore the backup; the database is as it was"
	invalid, why := fault.BackupNotVerified, "the backup did not come back as it was made; the database is as it was"
	if t.Input.Upload != nil {
		message = "the database server could not restore the upload; the database is as it was"
		invalid, why = fault.ValidationError, "the upload is no dump that can be restored; the database is as it was"
	}
	if r.Reason == command.ReasonInvalid {
		return fault.New(invalid, "%s", cmp.Or(r.Message, why))
	}
	if r.Reason == command.ReasonIncomplete {
		return fault.New(fault.UploadIncomplete, "%s", cmp.Or(r.Message, why))
	}
	return base.JobFailed(r.Reason, r.Message, message, "the database server has no room for a copy of the database")
}

// Ending implements work.Steps.
func (t turn) Ending(on operation.Event, cause *fault.Error) work.Ending {
	e := t.Logged(on, cause, audit.RestoreFinished, detailsOf(t.Of, t.Input))
	if on == operation.Succeed {
		e.Result = operation.Encode(t.result())
	}
	return e
}

// Lost implements work.Steps. Where the server is gone in the middle of a switch, nobody knows which database it is, and the
// record says so.
func (t turn) Lost(ctx context.Context, cause *fault.Error) (work.Next, error) {
	e := t.Ending(operation.Fail, cause)
	if t.Stage != restore.Switching && t.Stage != restore.Settling {
		return t.Finish(ctx, e)
	}
	return t.Finish(ctx, e.After(func(ctx context.Context, tx ports.Tx) error {
		stored, err := tx.Databases().Lock(ctx, t.Record.ID)
		if err != nil {
			return err
		}
		cell, err := stored.Status.Decide(database.AccessLost)
		if err != nil {
			return err
		}
		stored.Status = cell.Next
		if err := tx.Databases().Save(ctx, stored); err != nil {
			return err
		}
		details := audit.Details{"operationId": string(t.Of.ID), "reason": cause.Message}
		return t.r.base.Audit(ctx, tx, stored, audit.Operator, audit.AccessLost, details)
	}))
}
