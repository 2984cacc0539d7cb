package extensions

import (
	"cmp"
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
)

// Kind is the kind of the operations that install and upgrade extensions.
const Kind operation.Kind = "extension"

func (x *Extensions) register() {
	work.RegisterStaged(x.base.Work, work.Staged[extension.Input]{
		Kind: work.Kind[extension.Input]{
			Spec:  operation.Spec{Kind: Kind, Public: true, Right: account.Configure},
			Calls: []string{"change", "close"}, Commits: []string{string(stage.Failing), "succeeded", "failed", "canceled"},
		},
		Machine: extension.Machine, Begun: extension.Changing,
		Begin: func(_ context.Context, t *work.Turn[extension.Input]) (work.Steps, error) { return turn{t}, nil },
	})
}

// waiting is what an operation shows whose agent knows the account, and has not begun with the change yet.
const waiting = "waiting"

// turn is one step of a change.
type turn struct{ *work.Turn[extension.Input] }

// Do implements work.Steps: it asks the agent for the change. It keeps sending the same command, which starts the work and then
// reports on it. An outcome that the agent has not confirmed yet leaves the operation running: nothing is tried a second time.
// What the agent refuses for good ends it, as where another agent has taken the server over that has no such database; it has
// changed nothing then.
func (t turn) Do(ctx context.Context, s stage.Stage) (work.Next, error) {
	t.Stage = s
	if t.Of.Stage == operation.StageQueued {
		t.Progress(waiting, 0)
	}
	report, err := work.Send(ctx, t.Lease, "change", t.Agent, command.ChangeExtension{
		DatabaseID: t.Record.ID, Extension: t.Input.Extension, Change: t.Input.Change, Version: t.Input.Version,
	})
	switch {
	case base.RefusedForGood(err):
		return t.Fail(ctx, causeOf(command.ExtensionReport{}))
	case err != nil:
		return work.Next{}, err
	case report.State == command.ExtensionRunning && report.Stage == operation.StageQueued:
		return work.Again(t.PollAfter(true)), nil
	case report.State == command.ExtensionRunning:
		t.Progress(report.Stage, 0)
		return work.Again(t.PollAfter(false)), nil
	case report.State == command.ExtensionDone:
		e := t.Logged(operation.Succeed, nil, audit.ExtensionFinished, t.details(audit.Details{"version": report.InstalledVersion}))
		e.Result = operation.Encode(extension.Result{
			Extension: t.Input.Extension, InstalledVersion: report.InstalledVersion, Schema: report.Schema,
		})
		return t.Finish(ctx, e)
	}
	return t.Fail(ctx, causeOf(report))
}

// End implements work.Steps. An agent that has said that the change is committed, and neither reports on it nor closes the
// operation, would do so for ever, as where its ledger has lost the database.
func (t turn) End(ctx context.Context, e work.Ending) (work.Next, error) {
	if t.On == stage.Completed {
		const text = "the extension was changed, but the database server cannot report on it; the catalog shows what is installed"
		e = t.Ending(operation.Fail, fault.New(fault.AgentError, text))
		return t.Finish(ctx, e)
	}
	return t.Turn.End(ctx, e)
}

// causeOf tells whether the database is as it was before.
func causeOf(r command.ExtensionReport) *fault.Error {
	code, message := fault.ExtensionPreparationFailed, "the database server could not change the extension; nothing was changed"
	if r.Changed {
		code, message = fault.AgentError, "the database server could not finish the change of the extension"
	}
	return fault.New(code, "%s", cmp.Or(r.Message, message))
}

// Ending implements work.Steps.
func (t turn) Ending(on operation.Event, cause *fault.Error) work.Ending {
	return t.Logged(on, cause, audit.ExtensionFinished, t.details(audit.Details{}))
}

// details adds what each line of the activity log says about a change.
func (t turn) details(d audit.Details) audit.Details {
	d["extension"], d["change"] = string(t.Input.Extension), string(t.Input.Change)
	return d
}
