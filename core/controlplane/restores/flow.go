package restores

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/ports"
)

// Kind is the kind of the operations that restore databases in place.
const Kind operation.Kind = "restore"

func (r *Restores) register() {
	work.Register(r.base.Work, work.Kind[restore.Input]{
		Spec: operation.Spec{
			Kind: Kind, Public: true, Right: account.Own, Cancelable: restore.Cancelable, LoginsUntilBegun: true,
			Driven: restore.Driven,
		},
		Step: r.step, GiveUp: r.giveUp,
		Calls: []string{"load", "switch", "settings", "discard", "close"},
		Commits: []string{
			string(restore.Ready), string(restore.Switching), string(restore.Settling), string(restore.Failing),
			string(restore.Canceling), "succeeded", "failed", "canceled",
		},
	})
}

// turn is one step of a restore, with what it is about.
type turn struct {
	*work.Job[restore.Input]
	r      *Restores
	agent  ports.Agent
	record database.Record
	of     operation.Operation
	stage  restore.Stage
}

// step does what comes next. A managed restore that a caller drives is put down for as long as its callers may stay away, also
// where the step has failed; if a worker has it, they have stayed away.
func (r *Restores) step(ctx context.Context, job *work.Job[restore.Input]) (work.Next, error) {
	t := turn{Job: job, r: r, of: job.Operation()}
	t.stage = restore.Of(t.of)
	next, err := t.next(ctx)
	if err != nil && t.ByCaller() {
		next = work.Again(restore.Of(t.Operation()).Away())
	}
	return next, err
}

func (t turn) next(ctx context.Context) (next work.Next, err error) {
	if t.record, t.agent, err = t.r.base.DatabaseAndAgent(ctx, t.of); err != nil {
		return next, err
	}
	event := restore.Advance
	switch {
	case t.of.CancelRequested && restore.Cancelable(t.of):
		event = restore.Cancel
	case t.Input.Managed && !t.ByCaller():
		event = restore.Idle
	}
	cell, err := t.stage.Decide(event)
	if err != nil {
		return next, err
	}
	switch cell.Next { //nolint:exhaustive // the others are no stages that a step leads to
	case restore.Loading:
		return t.load(ctx)
	case restore.Switching:
		return t.switchOver(ctx, event)
	case restore.Settling:
		return t.settle(ctx)
	case restore.Failing:
		return t.end(ctx, t.failed(t.Failure()))
	case restore.Canceling, restore.Canceled:
		return t.cancel(ctx, event)
	}
	return next, fault.New(fault.InternalError, "a restore has no step from %s to %s", t.stage, cell.Next)
}

// enter commits the stage to which an event leads, with the cause of one in which the restore fails. Should this process end in
// it, a worker looks again as soon as the stage allows, and not only when the callers may no longer stay away.
func (t *turn) enter(
	ctx context.Context, on restore.Event, cause *fault.Error, also func(context.Context, ports.Tx) error,
) error {
	cell, err := t.stage.Decide(on)
	if err != nil {
		return err
	}
	s := cell.Next
	err = t.Save(ctx, string(s), func(o *operation.Operation) {
		o.Enter(string(s), cause)
		o.Input = operation.Encode(t.Input)
		if t.Input.Managed {
			o.NotBefore = t.r.base.Clock.Now().Add(s.Away())
		}
	}, also)
	if err == nil {
		t.stage = s
	}
	return err
}

// again puts a managed restore down for its callers, and any other one for a pause.
func (t turn) again(pause time.Duration) (work.Next, error) {
	if t.ByCaller() {
		pause = restore.Of(t.Operation()).Away()
	}
	return work.Again(pause), nil
}

// load has the agent make the copy. It keeps sending the same command, which starts the work, takes it up after a crash of the
// agent, and reports on it.
func (t turn) load(ctx context.Context) (work.Next, error) {
	if t.stage == restore.Queued {
		waits, err := t.waits(ctx)
		if err != nil {
			return work.Next{}, err
		}
		if waits {
			return t.again(work.PollMost)
		}
		if err := base.TellAccount(ctx, t.agent, t.record); err != nil {
			return work.Next{}, err
		}
		t.stage = restore.Loading // shown once the agent reports
	}
	report, err := t.ask(ctx)
	switch {
	case err != nil:
		return work.Next{}, err
	case report.State == command.LoadFailed:
		return t.fail(ctx, t.causeOf(report))
	case report.State == command.LoadReady:
		t.Input.Notes = report.Notes
		t.Progress(string(restore.Ready), almost)
		if err := t.enter(ctx, restore.Loaded, nil, nil); err != nil || t.ByCaller() {
			return work.Again(t.stage.Away()), err
		}
		return work.Again(0), nil
	}
	t.Progress(restore.Shown(report.Stage), min(report.Progress, almost))
	t.Moved(report.Bytes)
	return t.again(t.PollAfter(report.Stage == restore.Waiting))
}

// almost is the progress of a restore whose copy is whole.
const almost = 99

// waits reports whether a change of a login is unfinished that began before this restore did: from now on none begins. The lock
// lets one that has seen the restore queued commit first.
func (t turn) waits(ctx context.Context) (waits bool, err error) {
	err = t.r.base.UpdateDatabase(ctx, t.record.ID, func(ctx context.Context, tx ports.Tx, _ database.Record) error {
		_, err := tx.RoleChanges().Pending(ctx, t.record.ID)
		waits = err == nil
		return base.NotFound(err, nil)
	})
	return waits, err
}

// ask sends the command. A permanent refusal is returned as a report of failure.
func (t turn) ask(ctx context.Context) (report command.LoadReport, err error) {
	err = t.Call(ctx, "load", func(ctx context.Context, f ports.Fence) (err error) {
		report, err = ports.Do(ctx, t.agent, f, command.Load{
			DatabaseID: t.record.ID, Compare: t.Input.Upload == nil, Source: t.source(),
		})
		return err
	})
	if base.RefusedForGood(err) {
		return command.LoadReport{State: command.LoadFailed, Reason: base.ReasonShown(err)}, nil
	}
	return report, err
}

func (t turn) source() command.Source {
	s := command.Source{DatabaseID: t.record.ID, Filename: t.Input.Filename, ManifestSHA256: t.Input.ManifestSHA256}
	if u := t.Input.Upload; u != nil {
		s.Upload, s.SizeBytes, s.SHA256, s.MaxBytes = u.ID, u.SizeBytes, u.SHA256, u.MaxBytes
	}
	return s
}

// causeOf tells a backup or an upload that cannot be restored from a server that cannot restore it now.
func (t turn) causeOf(r command.LoadReport) *fault.Error {
	code, message := fault.AgentError, "the database server could not restore the backup; the database is as it was"
	invalid, why := fault.BackupNotVerified, "the backup did not come back as it was made; the database is as it was"
	if t.Input.Upload != nil {
		message = "the database server could not restore the upload; the database is as it was"
		invalid, why = fault.ValidationError, "the upload is no dump that can be restored; the database is as it was"
	}
	switch r.Reason { //nolint:exhaustive // the others tell the customer nothing
	case command.ReasonInvalid:
		code, message = invalid, why
	case command.ReasonStorageFull:
		code, message = fault.BackupStorageFull, "the database server has no room for a copy of the database"
	}
	return fault.New(code, "%s", cmp.Or(r.Message, message))
}

// fail commits what the restore fails with, and ends it. Nothing was switched.
func (t turn) fail(ctx context.Context, cause *fault.Error) (work.Next, error) {
	if err := t.enter(ctx, restore.Refused, cause, nil); err != nil {
		return work.Next{}, err
	}
	return t.end(ctx, t.failed(cause))
}

// cancel commits that the restore is canceled, and ends it: whoever takes it up after a crash does not go on with it. One that is
// queued ends at once.
func (t turn) cancel(ctx context.Context, on restore.Event) (work.Next, error) {
	if cell, err := t.stage.Decide(on); err != nil {
		return work.Next{}, err
	} else if cell.Next != restore.Canceled && t.stage != restore.Canceling {
		if err := t.enter(ctx, on, nil, nil); err != nil {
			return work.Next{}, err
		}
	}
	return t.end(ctx, t.ending(operation.ConfirmCancel, audit.OperationCanceled, audit.Details{}))
}

// end has the agent drop the copy, and makes the operation final. ReasonCompleted: it has switched after all, and that is
// concluded instead.
func (t turn) end(ctx context.Context, e work.Ending) (work.Next, error) {
	err := t.Close(ctx, t.agent)
	switch {
	case command.RefusedFor(err, command.ReasonCompleted):
		return t.switchOver(ctx, restore.Completed)
	case err != nil && !t.Untouched(err):
		return work.Next{}, err
	}
	return t.Finish(ctx, e)
}

func (t turn) failed(cause *fault.Error) work.Ending {
	e := t.ending(operation.Fail, audit.RestoreFinished, audit.Details{"status": "failed", "code": string(cause.Code)})
	e.Cause = cause
	return e
}

// ending makes the operation final, with a line of the activity log.
func (t turn) ending(on operation.Event, what audit.Action, details audit.Details) work.Ending {
	maps.Copy(details, detailsOf(t.of, t.Input))
	return work.Ending{On: on, DatabaseName: t.record.Name, Also: func(ctx context.Context, tx ports.Tx) error {
		return t.r.base.Audit(ctx, tx, t.record, t.of.Actor, what, details)
	}}
}
