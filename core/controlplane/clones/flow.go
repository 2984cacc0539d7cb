package clones

import (
	"cmp"
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Kind is the kind of the operations that clone databases. They belong to the source.
const Kind operation.Kind = "clone"

func (c *Clones) register() {
	work.RegisterStaged(c.base.Work, work.Staged[clone.Input]{
		Kind: work.Kind[clone.Input]{
			Spec:     operation.Spec{Kind: Kind, Public: true, Right: account.Own, BesideLogins: true},
			Withdraw: c.withdraw,
			Calls: append(slices.Clone(provision.TransferCalls), "ensure", "load", "switch", "discard", "prove", "close",
				"close_source"),
			Commits: []string{
				string(clone.Dumping), string(clone.Loading), string(clone.Switching), string(clone.Settling),
				string(stage.Failing), string(stage.Canceling), "succeeded", "failed", "canceled",
			},
		},
		Machine: clone.Machine, Begun: clone.Making,
		Begin: func(ctx context.Context, t *work.Turn[clone.Input]) (work.Steps, error) {
			record, err := c.base.Record(ctx, t.Input.DatabaseID)
			at := t.Agent
			if err == nil && t.Input.Elsewhere() {
				at, err = c.base.AgentOf(ctx, t.Input.ServerID)
			}
			return turn{t, c, record, at}, err
		},
	})
}

// turn is one step of a clone; its record is the clone's.
type turn struct {
	*work.Turn[clone.Input]
	c      *Clones
	record database.Record
	at     ports.Agent // of the clone's server; Agent is of the source's
}

// Do implements work.Steps.
func (t turn) Do(ctx context.Context, s stage.Stage) (work.Next, error) {
	switch s {
	case clone.Making:
		return t.make(ctx)
	case clone.Dumping:
		return t.dump(ctx)
	case clone.Loading:
		return t.load(ctx)
	case clone.Switching:
		return t.switchOver(ctx)
	}
	return t.settle(ctx)
}

// make has the agent make the database, empty and closed, and says whose it is, so that the jobs for it count as its account's.
func (t turn) make(ctx context.Context) (work.Next, error) {
	t.Progress(string(clone.Making), 0)
	spec, err := provision.Spec(ctx, t.c.base, t.record)
	if err != nil {
		return work.Next{}, err
	}
	spec.Closed = true
	_, err = work.Send(ctx, t.Lease, "ensure", t.at, spec)
	switch {
	case command.RefusedFor(err, command.ReasonNameTaken):
		return t.Fail(ctx, fault.Invalid("name", "is taken"))
	case base.RefusedForGood(err):
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError, "the database server could not make the clone; nothing is left of it"))
	case err != nil:
		return work.Next{}, err
	}
	if t.Input.Fresh {
		return t.Next(ctx, clone.MadeBare)
	}
	return t.Next(ctx, clone.Made)
}

// dump has the agent make the file, which is nobody's backup. It keeps sending the same command, as for a backup.
func (t turn) dump(ctx context.Context) (work.Next, error) {
	if t.Input.Elsewhere() {
		switch refused, err := provision.AdmitPeer(ctx, t.c.base, t.Lease, t.Record.ID, t.Record.ServerID, t.Input.ServerID); {
		case err != nil:
			return work.Next{}, err
		case refused != nil:
			return t.Fail(ctx, refused)
		}
	}
	report, failed, err := provision.Dump(ctx, t.Lease, t.Agent, command.Backup{
		DatabaseID: t.Record.ID, Filename: t.Input.Filename, Passing: true, At: t.Input.At,
	})
	switch {
	case err != nil:
		return work.Next{}, err
	case failed != nil:
		return t.Fail(ctx, failed)
	case report.State == command.BackupRunning:
		shown := recovery.Shown(report.Stage, string(clone.Dumping))
		return t.Running(shown, t.percent(clone.Dumping, report.Progress), report.Bytes,
			report.Stage == operation.StageQueued)
	}
	t.Input.ManifestSHA256 = report.ManifestSHA256
	return t.Next(ctx, clone.Dumped)
}

// load has the agent make the copy, under the clone's names.
func (t turn) load(ctx context.Context) (work.Next, error) {
	load := command.Load{
		DatabaseID: t.record.ID, Compare: true, Names: clone.Names(t.Record, t.record), Source: command.Source{
			DatabaseID: t.Record.ID, Filename: t.Input.Filename, Passing: t.Input.Fresh, ManifestSHA256: t.Input.ManifestSHA256,
		},
	}
	if t.Input.Elsewhere() {
		peer, err := t.peer(ctx)
		if err != nil {
			return work.Next{}, err
		}
		load.Peer, load.Source.AtPeer, load.Source.ManifestSHA256 = peer, true, ""
	}
	report, err := work.Send(ctx, t.Lease, "load", t.at, load)
	switch {
	case base.RefusedForGood(err):
		return t.Fail(ctx, loadFailed(command.LoadReport{Reason: base.ReasonShown(err)}))
	case err != nil:
		return work.Next{}, err
	case report.State == command.LoadFailed:
		return t.Fail(ctx, loadFailed(report))
	case report.State == command.LoadReady:
		return t.loaded(ctx, report)
	}
	return t.Running(restore.Shown(report.Stage), t.percent(clone.Loading, report.Progress), report.Bytes,
		report.Stage == restore.Waiting)
}

func (t turn) loaded(ctx context.Context, r command.LoadReport) (work.Next, error) {
	if cause := clone.TooLarge(r.SizeBytes, t.record); cause != nil {
		return t.Fail(ctx, cause)
	}
	t.Input.Notes = r.Notes
	t.Progress(string(clone.Switching), almost)
	return t.Next(ctx, clone.Loaded)
}

// loadFailed tells a file that cannot be restored from a server that cannot restore it now.
func loadFailed(r command.LoadReport) *fault.Error {
	if r.Reason == command.ReasonInvalid {
		return fault.New(fault.BackupNotVerified, "%s",
			cmp.Or(r.Message, "the clone did not become equal to the database that it is of; nothing is left of it"))
	}
	return base.JobFailed(r.Reason, r.Message, "the database server could not fill the clone; nothing is left of it",
		"the database server has no room for the clone")
}

// almost is the progress of a clone whose copy is whole.
const almost = 99

// percent is the progress of the whole: where a file is made first, that is the first half.
func (t turn) percent(s stage.Stage, progress int) int {
	switch {
	case !t.Input.Fresh:
	case s == clone.Dumping:
		progress /= 2
	default:
		progress = 50 + progress/2
	}
	return min(progress, almost)
}
