package extensions

import (
	"cmp"
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Kind is the kind of the operations that install and upgrade extensions.
const Kind operation.Kind = "extension"

// register makes the kind cancelable always: whether a change has been made already is for the agent to say when it closes the
// operation.
func (x *Extensions) register() {
	work.Register(x.base.Work, work.Kind[extension.Input]{
		Spec: operation.Spec{Kind: Kind, Public: true, Right: account.Configure, Cancelable: operation.Always},
		Step: x.step, GiveUp: x.giveUp,
		Calls: []string{"change", "close"}, Commits: []string{stageFailing, "succeeded", "failed", "canceled"},
	})
}

const (
	// stageWaiting is that of an operation whose agent knows the account, and has not begun with the change yet.
	stageWaiting = "waiting"
	// stageFailing is that of an operation whose failure is committed, and which is still to be closed at the agent.
	stageFailing = "failing"
)

// change is one step of an operation, with what it is about.
type change struct {
	*work.Job[extension.Input]
	x      *Extensions
	agent  ports.Agent
	record database.Record
	of     operation.Operation
}

// step asks the agent for the change. It keeps sending the same command, which starts the work and then reports on it. An outcome
// that the agent has not confirmed yet leaves the operation running: nothing is tried a second time. What the agent refuses for
// good ends it, as where another agent has taken the server over that has no such database.
func (x *Extensions) step(ctx context.Context, job *work.Job[extension.Input]) (work.Next, error) {
	c := change{Job: job, x: x, of: job.Operation()}
	var err error
	if c.record, c.agent, err = x.base.DatabaseAndAgent(ctx, c.of); err != nil {
		return work.Next{}, err
	}
	if e, decided := c.decided(); decided {
		if next, err := c.closeAs(ctx, e); !command.RefusedFor(err, command.ReasonCompleted) {
			return next, err
		}
	}
	if c.of.Stage == operation.StageQueued {
		if err := base.TellAccount(ctx, c.agent, c.record); err != nil {
			return work.Next{}, err
		}
		c.Progress(stageWaiting, 0)
	}
	report, err := c.ask(ctx)
	switch {
	case err != nil:
		return work.Next{}, err
	case report.State == command.ExtensionRunning && report.Stage == operation.StageQueued:
		return work.Again(c.PollAfter(true)), nil
	case report.State == command.ExtensionRunning:
		c.Progress(report.Stage, 0)
		return work.Again(c.PollAfter(false)), nil
	case report.State == command.ExtensionDone:
		return c.Finish(ctx, c.succeeded(report))
	}
	return c.fail(ctx, causeOf(report))
}

// giveUp has the agent close the operation. What it has changed by then stays, and the catalog shows it.
func (x *Extensions) giveUp(ctx context.Context, job *work.Job[extension.Input], by operation.Order) (work.Next, error) {
	c := change{Job: job, x: x, of: job.Operation()}
	var err error
	c.record, c.agent, err = x.base.DatabaseAndAgent(ctx, c.of)
	switch {
	case by.ServerGone && c.record.ID != "":
		return c.Finish(ctx, c.failed(by.Cause()))
	case err != nil:
		return work.Next{}, err
	}
	return c.fail(ctx, by.Cause())
}

// fail ends an operation that no other question would bring further. An agent that refuses to report on the change, and to close
// the operation because the change is committed, would do so for ever, as where its ledger has lost the database.
func (c change) fail(ctx context.Context, cause *fault.Error) (work.Next, error) {
	if err := c.BeginFailing(ctx, stageFailing, cause, nil); err != nil {
		return work.Next{}, err
	}
	next, err := c.closeAs(ctx, c.failed(cause))
	if command.RefusedFor(err, command.ReasonCompleted) {
		const text = "the extension was changed, but the database server cannot report on it; the catalog shows what is installed"
		return c.Finish(ctx, c.failed(fault.New(fault.AgentError, text)))
	}
	return next, err
}

// ask sends the command. A permanent refusal is returned as a report of failure: the agent has changed nothing.
func (c change) ask(ctx context.Context) (report command.ExtensionReport, err error) {
	err = c.Call(ctx, "change", func(ctx context.Context, f ports.Fence) (err error) {
		report, err = ports.Do(ctx, c.agent, f, command.ChangeExtension{
			DatabaseID: c.record.ID, Extension: c.Input.Extension, Change: c.Input.Change, Version: c.Input.Version,
		})
		return err
	})
	if base.RefusedForGood(err) {
		return command.ExtensionReport{State: command.ExtensionFailed, Reason: command.ReasonFailed}, nil
	}
	return report, err
}

// decided is the end of an operation that has failed already, or that a user wants canceled.
func (c change) decided() (e work.Ending, decided bool) {
	if cause := c.Failure(); cause != nil {
		return c.failed(cause), true
	}
	return c.canceled(), c.of.CancelRequested
}

// closeAs ends the work at the agent, and the operation. ReasonCompleted: the change is made, and nothing has ended.
func (c change) closeAs(ctx context.Context, e work.Ending) (work.Next, error) {
	if err := c.Close(ctx, c.agent); err != nil {
		return work.Next{}, err
	}
	return c.Finish(ctx, e)
}

func (c change) canceled() work.Ending {
	return work.Ending{
		On: operation.ConfirmCancel, DatabaseName: c.record.Name, Also: c.logged(audit.OperationCanceled, audit.Details{}),
	}
}

func (c change) succeeded(r command.ExtensionReport) work.Ending {
	result := extension.Result{Extension: c.Input.Extension, InstalledVersion: r.InstalledVersion, Schema: r.Schema}
	return work.Ending{
		On: operation.Succeed, DatabaseName: c.record.Name, Result: operation.Encode(result),
		Also: c.logged(audit.ExtensionFinished, audit.Details{"status": "succeeded", "version": r.InstalledVersion}),
	}
}

// causeOf tells whether the database is as it was before.
func causeOf(r command.ExtensionReport) *fault.Error {
	code, message := fault.ExtensionPreparationFailed, "the database server could not change the extension; nothing was changed"
	if r.Changed {
		code, message = fault.AgentError, "the database server could not finish the change of the extension"
	}
	return fault.New(code, "%s", cmp.Or(r.Message, message))
}

func (c change) failed(cause *fault.Error) work.Ending {
	return work.Ending{
		On: operation.Fail, DatabaseName: c.record.Name, Cause: cause,
		Also: c.logged(audit.ExtensionFinished, audit.Details{"status": "failed", "code": string(cause.Code)}),
	}
}

// logged adds a line about the operation to the activity log.
func (c change) logged(what audit.Action, details audit.Details) func(context.Context, ports.Tx) error {
	details["operationId"], details["extension"], details["change"] =
		string(c.of.ID), string(c.Input.Extension), string(c.Input.Change)
	return func(ctx context.Context, tx ports.Tx) error {
		return c.x.base.Audit(ctx, tx, c.record, c.of.Actor, what, details)
	}
}
