package clones

import (
	"cmp"
	"context"

	"github.com/pgherd/pgherd/core/account"
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

// Kind is the kind of the operations that clone databases. They belong to the source.
const Kind operation.Kind = "clone"

func (c *Clones) register() {
	work.Register(c.base.Work, work.Kind[clone.Input]{
		Spec: operation.Spec{
			Kind: Kind, Public: true, Right: account.Own, Cancelable: clone.Cancelable, BesideLogins: true,
		},
		Step:     c.step,
		GiveUp:   c.giveUp,
		Withdraw: c.withdraw,
		Calls:    []string{"ensure", "dump", "load", "switch", "discard", "prove", "close"},
		Commits: []string{
			string(clone.Dumping), string(clone.Loading), string(clone.Switching), string(clone.Settling), string(clone.Failing),
			string(clone.Canceling), "succeeded", "failed", "canceled",
		},
	})
}

// turn is one step of a clone, with what it is about.
type turn struct {
	*work.Job[clone.Input]
	c              *Clones
	agent          ports.Agent
	source, record database.Record // record is the clone's
	of             operation.Operation
	stage          clone.Stage
}

func (c *Clones) step(ctx context.Context, job *work.Job[clone.Input]) (next work.Next, err error) {
	t := turn{Job: job, c: c, of: job.Operation()}
	if t.stage = clone.Of(t.of); t.stage == clone.Queued {
		t.stage = clone.Making // a worker has it: the agent may have heard of it
	}
	if t.source, t.agent, err = c.base.DatabaseAndAgent(ctx, t.of); err != nil {
		return next, err
	}
	t.record, err = ports.Read(ctx, c.base.Store, func(ctx context.Context, tx ports.Tx) (database.Record, error) {
		return tx.Databases().Get(ctx, t.Input.DatabaseID)
	})
	if err != nil {
		return next, err
	}
	if t.of.CancelRequested && clone.Cancelable(t.of) {
		return t.cancel(ctx)
	}
	cell, err := t.stage.Decide(clone.Advance)
	if err != nil {
		return next, err
	}
	switch cell.Next { //nolint:exhaustive // the others are no stages that a step leads to
	case clone.Making:
		return t.make(ctx)
	case clone.Dumping:
		return t.dump(ctx)
	case clone.Loading:
		return t.load(ctx)
	case clone.Switching:
		return t.switchOver(ctx)
	case clone.Settling:
		return t.settle(ctx)
	case clone.Failing:
		return t.end(ctx, t.failed(t.Failure()))
	case clone.Canceling:
		return t.cancel(ctx)
	}
	return next, fault.New(fault.InternalError, "a clone has no step from %s to %s", t.stage, cell.Next)
}

// enter commits the stage to which an event leads, with the cause of one in which the clone fails.
func (t *turn) enter(
	ctx context.Context, on clone.Event, cause *fault.Error, also func(context.Context, ports.Tx) error,
) error {
	cell, err := t.stage.Decide(on)
	if err != nil {
		return err
	}
	s := cell.Next
	err = t.Save(ctx, string(s), func(o *operation.Operation) {
		o.Enter(string(s), cause)
		o.Input = operation.Encode(t.Input)
	}, also)
	if err == nil {
		t.stage = s
	}
	return err
}

// next commits a stage whose work is done by the next step.
func (t turn) next(ctx context.Context, on clone.Event) (work.Next, error) {
	return work.Again(0), t.enter(ctx, on, nil, nil)
}

// make has the agent make the database, empty and closed, and says whose it is, so that the jobs for it count as its account's.
func (t turn) make(ctx context.Context) (work.Next, error) {
	t.Progress(string(clone.Making), 0)
	spec, err := provision.Spec(ctx, t.c.base, t.record)
	if err != nil {
		return work.Next{}, err
	}
	spec.Closed = true
	err = t.Call(ctx, "ensure", func(ctx context.Context, f ports.Fence) error { return ports.Tell(ctx, t.agent, f, spec) })
	switch {
	case command.RefusedFor(err, command.ReasonNameTaken):
		return t.fail(ctx, fault.Invalid("name", "is taken"))
	case base.RefusedForGood(err):
		return t.fail(ctx, fault.Wrap(err, fault.AgentError, "the database server could not make the clone; nothing is left of it"))
	case err != nil:
		return work.Next{}, err
	}
	for _, r := range []database.Record{t.source, t.record} {
		if err := base.TellAccount(ctx, t.agent, r); err != nil {
			return work.Next{}, err
		}
	}
	if t.Input.Fresh {
		return t.next(ctx, clone.MadeBare)
	}
	return t.next(ctx, clone.Made)
}

// dump has the agent make the file, which is nobody's backup. It keeps sending the same command, as for a backup.
func (t turn) dump(ctx context.Context) (work.Next, error) {
	var report command.BackupReport
	err := t.Call(ctx, "dump", func(ctx context.Context, f ports.Fence) (err error) {
		report, err = ports.Do(ctx, t.agent, f, command.Backup{
			DatabaseID: t.source.ID, Filename: t.Input.Filename, Passing: true,
		})
		return err
	})
	switch {
	case base.RefusedForGood(err):
		return t.fail(ctx, dumpFailed(command.BackupReport{Reason: base.ReasonShown(err)}))
	case err != nil:
		return work.Next{}, err
	case report.State == command.BackupRunning:
		t.Progress(string(clone.Dumping), t.percent(clone.Dumping, report.Progress))
		t.Moved(report.Bytes)
		return work.Again(t.PollAfter(report.Stage == operation.StageQueued)), nil
	case report.State == command.BackupFailed:
		return t.fail(ctx, dumpFailed(report))
	}
	t.Input.ManifestSHA256 = report.ManifestSHA256
	return t.next(ctx, clone.Dumped)
}

func dumpFailed(r command.BackupReport) *fault.Error {
	code, message := fault.AgentError, "the database server could not dump the database"
	if r.Reason == command.ReasonStorageFull {
		code, message = fault.BackupStorageFull, "the database server has no room for a dump of the database"
	}
	return fault.New(code, "%s", cmp.Or(r.Message, message))
}

// load has the agent make the copy, under the clone's names.
func (t turn) load(ctx context.Context) (work.Next, error) {
	var report command.LoadReport
	err := t.Call(ctx, "load", func(ctx context.Context, f ports.Fence) (err error) {
		report, err = ports.Do(ctx, t.agent, f, command.Load{
			DatabaseID: t.record.ID, Compare: true, Names: clone.Names(t.source, t.record),
			Source: command.Source{
				DatabaseID: t.source.ID, Filename: t.Input.Filename, ManifestSHA256: t.Input.ManifestSHA256,
			},
		})
		return err
	})
	switch {
	case base.RefusedForGood(err):
		return t.fail(ctx, loadFailed(command.LoadReport{Reason: base.ReasonShown(err)}))
	case err != nil:
		return work.Next{}, err
	case report.State == command.LoadFailed:
		return t.fail(ctx, loadFailed(report))
	case report.State == command.LoadReady:
		return t.loaded(ctx, report)
	}
	t.Progress(restore.Shown(report.Stage), t.percent(clone.Loading, report.Progress))
	t.Moved(report.Bytes)
	return work.Again(t.PollAfter(report.Stage == restore.Waiting)), nil
}

func (t turn) loaded(ctx context.Context, r command.LoadReport) (work.Next, error) {
	if cause := clone.TooLarge(r.SizeBytes, t.record); cause != nil {
		return t.fail(ctx, cause)
	}
	t.Input.Notes = r.Notes
	t.Progress(string(clone.Switching), almost)
	return t.next(ctx, clone.Loaded)
}

// loadFailed tells a file that cannot be restored from a server that cannot restore it now.
func loadFailed(r command.LoadReport) *fault.Error {
	code, message := fault.AgentError, "the database server could not fill the clone; nothing is left of it"
	switch r.Reason { //nolint:exhaustive // the others tell the customer nothing
	case command.ReasonInvalid:
		code, message = fault.BackupNotVerified, "the clone did not become equal to the database that it is of; nothing is left of it"
	case command.ReasonStorageFull:
		code, message = fault.BackupStorageFull, "the database server has no room for the clone"
	}
	return fault.New(code, "%s", cmp.Or(r.Message, message))
}

// almost is the progress of a clone whose copy is whole.
const almost = 99

// percent is the progress of the whole: where a file is made first, that is the first half.
func (t turn) percent(s clone.Stage, progress int) int {
	switch {
	case !t.Input.Fresh:
	case s == clone.Dumping:
		progress /= 2
	default:
		progress = 50 + progress/2
	}
	return min(progress, almost)
}
