package rehearsals

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Kind is the kind of the operations that rehearse moves.
const Kind operation.Kind = "rehearsal"

func (x *Rehearsals) register() {
	work.RegisterStaged(x.base.Work, work.Staged[rehearsal.Input]{
		Kind: work.Kind[rehearsal.Input]{
			Spec:  operation.Spec{Kind: Kind, Public: true, Right: account.Own, BesideLogins: true},
			Calls: slices.Concat(provision.StandCalls, provision.TransferCalls, []string{"load", "close_target", "close"}),
			Commits: []string{
				string(rehearsal.Admitting), string(rehearsal.Dumping), string(rehearsal.Loading), string(rehearsal.Clearing),
				string(stage.Failing), string(stage.Canceling), "succeeded", "failed", "canceled",
			},
		},
		Machine: rehearsal.Machine, Begun: rehearsal.Making,
		Begin: x.begin,
	})
}

// turn is one step of a rehearsal.
type turn struct {
	*work.Turn[rehearsal.Input]
	x    *Rehearsals
	from server.Server
	to   server.Server
	at   ports.Agent // of the server where the copy is; Agent is of the database's
}

func (x *Rehearsals) begin(ctx context.Context, t *work.Turn[rehearsal.Input]) (work.Steps, error) {
	from, _, err := x.base.ServerOf(ctx, t.Input.From)
	if err != nil {
		return nil, err
	}
	to, at, err := x.base.ServerOf(ctx, t.Input.To)
	return &turn{t, x, from, to, at}, err
}

// Do implements work.Steps.
func (t *turn) Do(ctx context.Context, s stage.Stage) (work.Next, error) {
	if late := t.Input.Overdue(t.x.base.Clock.Now()); late != nil && t.Stage != rehearsal.Clearing {
		return t.Fail(ctx, late)
	}
	switch s {
	case rehearsal.Making:
		return t.make(ctx)
	case rehearsal.Admitting:
		return t.admit(ctx)
	case rehearsal.Dumping:
		return t.dump(ctx)
	case rehearsal.Loading:
		return t.load(ctx)
	}
	return t.End(ctx, t.Ending(operation.Succeed, nil))
}

// make has the other server make the database, empty, with its logins and roles, which nobody gets in by.
func (t *turn) make(ctx context.Context) (work.Next, error) {
	t.Progress(string(rehearsal.Making), 0)
	all, err := t.x.roles(ctx, t.x.base, t.Record.ID)
	if err != nil {
		return work.Next{}, err
	}
	switch refused, err := provision.Stand(ctx, t.x.base, t.Lease, t.at, t.Record, all); {
	case err != nil:
		return work.Next{}, err
	case refused != nil:
		return t.Fail(ctx, refused)
	}
	return t.Next(ctx, rehearsal.Made)
}

// peer is the server that has the database, as the other one reaches it.
func (t *turn) peer() (command.Peer, error) { return t.x.base.PeerOf(t.from, t.Of) }

// admit has the server that has the database let the other one in.
func (t *turn) admit(ctx context.Context) (work.Next, error) {
	switch refused, err := provision.AdmitPeer(ctx, t.x.base, t.Lease, t.Record.ID, t.from.ID, t.to.ID); {
	case err != nil:
		return work.Next{}, err
	case refused != nil:
		return t.Fail(ctx, refused)
	}
	return t.Next(ctx, rehearsal.Admitted)
}

// progress is that of the whole: by the file, and then by the copy that is made of it.
func progress(file, copied int) int { return (file + copied) * 95 / 200 }

// dump has a file made of the database. Its changes are not followed.
func (t *turn) dump(ctx context.Context) (work.Next, error) {
	switch report, failed, err := provision.Dump(ctx, t.Lease, t.Agent, command.Backup{
		DatabaseID: t.Record.ID, Filename: t.Input.Filename, Passing: true,
	}); {
	case err != nil:
		return work.Next{}, err
	case failed != nil:
		return t.Fail(ctx, failed)
	case report.State == command.BackupRunning:
		return t.Running(string(rehearsal.Dumping), progress(report.Progress, 0), report.Bytes,
			report.Stage == operation.StageQueued)
	}
	switch is, err := t.x.movable(ctx, t.Record); {
	case err != nil:
		return work.Next{}, err
	case is.SchemaSHA256 != t.Input.SchemaSHA256:
		return t.Fail(ctx, fault.New(fault.DatabaseStateConflict,
			"the schema of the database was changed while it was rehearsed: rehearse it again"))
	}
	return t.Next(ctx, rehearsal.Dumped)
}

// load has the other server make the copy, and say what breaks.
func (t *turn) load(ctx context.Context) (work.Next, error) {
	peer, err := t.peer()
	if err != nil {
		return work.Next{}, err
	}
	report, err := work.Send(ctx, t.Lease, "load", t.at, command.Load{
		DatabaseID: t.Record.ID, Compare: true, Rehearsal: true, Moving: true, Peer: peer, Source: command.Source{
			DatabaseID: t.Record.ID, Filename: t.Input.Filename, Passing: true, AtPeer: true,
		},
	})
	if base.RefusedForGood(err) {
		report, err = command.LoadReport{State: command.LoadFailed, Reason: base.ReasonShown(err)}, nil
	}
	switch {
	case err != nil:
		return work.Next{}, err
	case report.State == command.LoadFailed:
		return t.Fail(ctx, base.JobFailed(report.Reason, report.Message, "the other server could not try the copy",
			"the other server has no room for the copy"))
	case report.State == command.LoadReady:
		t.Input.Breaks, t.Input.Notes = report.Breaks, report.Notes
		return t.Next(ctx, rehearsal.Tried)
	}
	return t.Running(restore.Shown(report.Stage), progress(100, report.Progress), report.Bytes,
		report.Stage == restore.Waiting)
}

// End implements work.Steps: both agents remove what they have of the rehearsal. An operator need not wait for either.
func (t *turn) End(ctx context.Context, e work.Ending) (work.Next, error) {
	err := errors.Join(t.close(ctx, "close_target", t.at), t.close(ctx, "close", t.Agent))
	if err != nil && !t.Ordered {
		return work.Next{}, err
	}
	return t.Finish(ctx, e)
}

func (t *turn) close(ctx context.Context, what string, a ports.Agent) error {
	err := t.Call(ctx, what, func(ctx context.Context, f ports.Fence) error { return ports.Close(ctx, a, f) })
	if t.Untouched(err) {
		return nil
	}
	return err
}

// Lost implements work.Steps: the database's server is gone. What the other one has is removed as far as it answers.
func (t *turn) Lost(ctx context.Context, cause *fault.Error) (work.Next, error) {
	if err := t.close(ctx, "close_target", t.at); err != nil {
		t.Log("rehearsal.not_cleared", err)
	}
	return t.Turn.Lost(ctx, cause)
}

// Ending implements work.Steps: what was found is kept, in the place of what the last rehearsal for the version has found.
func (t *turn) Ending(on operation.Event, cause *fault.Error) work.Ending {
	e := t.Logged(on, cause, audit.RehearsalFinished, audit.Details{
		"to": t.to.Name, "postgresVersion": strconv.Itoa(t.Input.Version), "breaks": strconv.Itoa(len(t.Input.Breaks)),
	})
	if on != operation.Succeed {
		return e
	}
	breaks := append([]rehearsal.Break{}, t.Input.Breaks...)
	e.Result = operation.Encode(rehearsal.Result{
		Server: t.to.Name, PostgresVersion: t.Input.Version, Breaks: breaks, Notes: append([]string{}, t.Input.Notes...),
	})
	return e.After(func(ctx context.Context, tx ports.Tx) error {
		return tx.Rehearsals().Put(ctx, rehearsal.Rehearsal{
			DatabaseID: t.Record.ID, PostgresVersion: t.Input.Version, ServerID: t.to.ID, OperationID: t.Of.ID,
			EndedAt: t.x.base.Clock.Now(), SchemaSHA256: t.Input.SchemaSHA256, Breaks: operation.Encode(breaks),
		})
	})
}

var _ work.Steps = (*turn)(nil)
