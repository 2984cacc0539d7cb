package moves

import (
	"context"
	"errors"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Kind is the kind of the operations that move databases.
const Kind = move.Kind

func (m *Moves) register() {
	work.RegisterStaged(m.base.Work, work.Staged[move.Input]{
		Kind: work.Kind[move.Input]{
			Spec: operation.Spec{Kind: Kind, Public: true, Right: account.Own, BesidePasswords: move.AdmitsPasswords},
			Calls: slices.Concat(provision.StandCalls, provision.TransferCalls, []string{
				"load", "switch", "follow", "part", "take", "serve", "depart", "adopt", "leave", "close_target", "close",
			}),
			Commits: []string{
				string(move.Admitting), string(move.Shutting), string(move.Dumping), string(move.Loading), string(move.Switching),
				string(move.Following), string(move.Parting), string(move.Serving), string(move.Departing), string(move.Settling),
				string(move.Leaving), string(stage.Failing), string(stage.Canceling), "generation", "succeeded", "failed", "canceled",
			},
		},
		Machine: move.Machine, Begun: move.Making,
		Begin: m.begin,
	})
}

// site is a server of a move.
type site struct {
	server.Server
	agent ports.Agent
}

// turn is one step of a move.
type turn struct {
	*work.Turn[move.Input]
	m        *Moves
	from, to site
}

func (m *Moves) begin(ctx context.Context, t *work.Turn[move.Input]) (work.Steps, error) {
	from, err := m.site(ctx, t.Input.From)
	if err != nil {
		return nil, err
	}
	to, err := m.site(ctx, t.Input.To)
	return &turn{t, m, from, to}, err
}

func (m *Moves) site(ctx context.Context, of id.ServerID) (s site, err error) {
	s.Server, s.agent, err = m.base.ServerOf(ctx, of)
	return s, err
}

// Do implements work.Steps.
func (t *turn) Do(ctx context.Context, s stage.Stage) (work.Next, error) {
	if late := t.Input.Overdue(t.m.base.Clock.Now()); late != nil && move.Machine.Admits(t.Stage, stage.Refused) {
		return t.Fail(ctx, late)
	}
	switch s {
	case move.Making:
		return t.make(ctx)
	case move.Admitting:
		return t.admit(ctx)
	case move.Shutting:
		return t.shut(ctx)
	case move.Dumping:
		return t.dump(ctx)
	case move.Loading:
		return t.load(ctx)
	case move.Switching:
		return t.switchOver(ctx)
	case move.Following:
		return t.follow(ctx)
	case move.Parting:
		return t.part(ctx)
	case move.Serving:
		return t.serve(ctx)
	case move.Departing:
		return t.depart(ctx)
	case move.Settling:
		return t.settle(ctx)
	}
	return t.leave(ctx)
}

// peer is the server that has the database, as the other one reaches it.
func (t *turn) peer() (command.Peer, error) { return t.m.base.PeerOf(t.from.Server, t.Of) }

// make has the other server make the database, empty and closed, with what keeps customers out of it or lets them in.
func (t *turn) make(ctx context.Context) (work.Next, error) {
	t.Progress(string(move.Making), 0)
	all, err := t.m.roles(ctx, t.m.base, t.Record.ID)
	if err != nil {
		return work.Next{}, err
	}
	switch refused, err := provision.Stand(ctx, t.m.base, t.Lease, t.to.agent, t.Record, all); {
	case err != nil:
		return work.Next{}, err
	case refused != nil:
		return t.Fail(ctx, refused)
	}
	if t.Input.Sent, err = t.m.base.PushTo(ctx, t.to.agent, t.Record.ID); err != nil {
		return work.Next{}, err
	}
	return t.Next(ctx, move.Made)
}

// admit has the server that has the database let the other one in.
func (t *turn) admit(ctx context.Context) (work.Next, error) {
	switch refused, err := provision.AdmitPeer(ctx, t.m.base, t.Lease, t.Record.ID, t.from.ID, t.to.ID); {
	case err != nil:
		return work.Next{}, err
	case refused != nil:
		return t.Fail(ctx, refused)
	case !t.Input.Closed:
		return t.Next(ctx, move.Admitted)
	}
	switch err := t.Enter(ctx, move.AdmittedOne, t.settled); {
	case errors.Is(err, errChanging):
		return t.Again(partAgain), nil
	case err != nil:
		return work.Next{}, err
	}
	return t.shut(ctx)
}

// shut has customers kept out of a database whose changes cannot be followed.
func (t *turn) shut(ctx context.Context) (work.Next, error) {
	t.Progress(string(move.Shutting), 0)
	now := t.m.base.Clock.Now()
	_, err := work.Send(ctx, t.Lease, "part", t.from.agent, command.Part{DatabaseID: t.Record.ID, Closed: true})
	switch {
	case command.RefusedFor(err, command.ReasonBusy) && t.Of.Attempts >= restore.MostSwitches:
		return t.Fail(ctx, fault.New(fault.AgentError, "customers cannot be kept out of the database: %s", base.MessageShown(err)))
	case base.RefusedForGood(err):
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError, "the server of the database could not keep customers out"))
	case err != nil:
		return work.Next{}, err
	}
	t.Input.ShutAt = &now
	return t.Next(ctx, move.Shut)
}

// file has the server that has the database make the file that passes, and says how far that is.
func (t *turn) file(ctx context.Context) (report command.BackupReport, failed *fault.Error, err error) {
	return provision.Dump(ctx, t.Lease, t.from.agent, command.Backup{
		DatabaseID: t.Record.ID, Filename: t.Input.Filename, Passing: true, Followed: !t.Input.Closed,
	})
}

// dump waits until the file is being written.
func (t *turn) dump(ctx context.Context) (work.Next, error) {
	switch report, failed, err := t.file(ctx); {
	case err != nil:
		return work.Next{}, err
	case failed != nil:
		return t.Fail(ctx, failed)
	case report.State == command.BackupRunning && report.Stage != backup.Dumping:
		return t.Running(string(move.Dumping), progress(report.Progress, 0), report.Bytes, report.Stage == operation.StageQueued)
	}
	return t.Next(ctx, move.Begun)
}

// almost is the progress of a move that follows, and of what comes then.
const almost = 95

// progress is that of the whole: by the file, and then by the copy that is made of it.
func progress(file, copied int) int { return (file + copied) * 45 / 100 }

// load has the other server make the copy, of the file as far as it is written. The server that has the database makes the file
// anew where it has lost it.
func (t *turn) load(ctx context.Context) (work.Next, error) {
	file, failed, err := t.file(ctx)
	switch {
	case err != nil:
		return work.Next{}, err
	case failed != nil:
		return t.Fail(ctx, failed)
	}
	peer, err := t.peer()
	if err != nil {
		return work.Next{}, err
	}
	report, err := work.Send(ctx, t.Lease, "load", t.to.agent, command.Load{
		DatabaseID: t.Record.ID, Compare: true, Moving: true, Peer: peer, Source: command.Source{
			DatabaseID: t.Record.ID, Filename: t.Input.Filename, Passing: true, AtPeer: true,
		},
	})
	if base.RefusedForGood(err) {
		report, err = command.LoadReport{State: command.LoadFailed, Reason: base.ReasonShown(err)}, nil
	}
	switch {
	case err != nil:
		return work.Next{}, err
	case report.State == command.LoadFailed && report.Reason == command.ReasonInvalid:
		return t.Fail(ctx, fault.New(fault.BackupNotVerified, "%s", report.Message))
	case report.State == command.LoadFailed:
		return t.Fail(ctx, base.JobFailed(report.Reason, report.Message, "the other server could not fill the database",
			"the other server has no room for the database"))
	case report.State == command.LoadReady:
		t.Input.Notes = report.Notes
		t.Progress(string(move.Switching), progress(100, 100))
		return t.Next(ctx, move.Loaded)
	}
	shown, waits := restore.Shown(report.Stage), report.Stage == restore.Waiting
	if file.State == command.BackupRunning {
		return t.Running(shown, progress(file.Progress, 0), file.Bytes, waits)
	}
	return t.Running(shown, progress(100, report.Progress), report.Bytes, waits)
}

// switchOver has the copy become the other server's database, which nobody gets into yet.
func (t *turn) switchOver(ctx context.Context) (work.Next, error) {
	_, err := work.Send(ctx, t.Lease, "switch", t.to.agent, command.Switch{DatabaseID: t.Record.ID, Moving: true})
	switch {
	case command.RefusedFor(err, command.ReasonBusy) && t.Of.Attempts >= restore.MostSwitches, base.RefusedForGood(err):
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError, "the other server could not put the copy in its place"))
	case err != nil:
		return work.Next{}, err
	case t.Input.Closed:
		return t.Next(ctx, move.SwitchedAll)
	}
	now := t.m.base.Clock.Now()
	t.Input.FollowedAt = &now
	return t.Next(ctx, move.Switched)
}

// follow has the other server apply what has changed since the file was made. Once little is missing, the parting follows in the
// same turn.
func (t *turn) follow(ctx context.Context) (work.Next, error) {
	peer, err := t.peer()
	if err != nil {
		return work.Next{}, err
	}
	report, err := work.Send(ctx, t.Lease, "follow", t.to.agent, command.Follow{DatabaseID: t.Record.ID, Peer: peer})
	switch {
	case base.RefusedForGood(err):
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError, "the other server cannot follow the changes of the database"))
	case err != nil:
		return work.Next{}, err
	case report.State == command.FollowFailed:
		return t.Fail(ctx, base.JobFailed(report.Reason, report.Message,
			"the other server could not follow the changes of the database", "the other server has no room for the database"))
	case report.State == command.Following:
		return t.Running(string(move.Following), almost, command.Bytes{}, false)
	}
	if err := t.ready(ctx); err != nil {
		return work.Next{}, err
	}
	now := t.m.base.Clock.Now()
	t.Input.ShutAt = &now
	switch err := t.Enter(ctx, move.Near, t.settled); {
	case errors.Is(err, errChanging):
		t.Input.ShutAt = nil
		return t.Again(partAgain), nil
	case err != nil:
		return work.Next{}, err
	}
	return t.part(ctx)
}
