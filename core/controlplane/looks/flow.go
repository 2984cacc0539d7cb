package looks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// kind is a kind of operations of which each is one command.
type kind[In any, R command.Looked] struct {
	name     operation.Kind
	call     string // of the command
	finished audit.Action
	secret   func(in *In) any // where what is sealed of the input belongs; nil: nothing is
	command  func(t *work.Turn[In]) command.Returning[R]
	result   func(t *work.Turn[In], r R) (any, error)
	details  func(in In) audit.Details
}

func register[In any, R command.Looked](l *Looks, k kind[In, R]) {
	work.RegisterStaged(l.base.Work, work.Staged[In]{
		Kind: work.Kind[In]{
			Spec:  operation.Spec{Kind: k.name, Public: true, Right: account.Own, BesideLogins: true},
			Calls: []string{k.call, "close"}, Commits: []string{"succeeded", "failed", "canceled"},
		},
		Machine: recovery.Machine, Begun: recovery.Looking,
		Begin: func(_ context.Context, t *work.Turn[In]) (work.Steps, error) {
			return turn[In, R]{t, k, l.base.Secrets}, nil
		},
	})
}

// turn is one step of an operation.
type turn[In any, R command.Looked] struct {
	*work.Turn[In]
	kind[In, R]
	box ports.SecretBox
}

// Do implements work.Steps: it keeps sending the same command, which starts the work, resumes it after a crash of the agent, and
// returns its progress. The result is sealed: it is of the customer's data, and not for everybody who sees the operation.
func (t turn[In, R]) Do(ctx context.Context, _ stage.Stage) (work.Next, error) {
	if err := t.open(); err != nil {
		return work.Next{}, err
	}
	report, err := work.Send(ctx, t.Lease, t.call, t.Agent, t.command(t.Turn))
	if base.RefusedForGood(err) {
		return t.Fail(ctx, t.failed(refused(err)))
	}
	if err != nil {
		return work.Next{}, err
	}
	switch look := report.Standing(); look.State {
	case command.LookRunning:
		return t.Running(look.Stage, look.Progress, look.Bytes, look.Stage == operation.StageQueued)
	case command.LookFailed:
		return t.Fail(ctx, t.failed(look))
	case command.LookDone:
	}
	result, err := t.result(t.Turn, report)
	if err != nil { // it has nothing to take back
		return t.Lost(ctx, fault.New(fault.AgentError, "the database server has answered with what cannot be read"))
	}
	e := t.Ending(operation.Succeed, nil)
	if e.SealedResult, err = t.box.Seal(operation.Encode(result), t.Of.ResultContext()); err != nil {
		return work.Next{}, err
	}
	return t.Finish(ctx, e)
}

// open takes in what is sealed of the input. Where that does not go for now, or until an operator has mended the key ring, the
// operation goes on later; it is canceled and given up without.
func (t turn[In, R]) open() error {
	if t.secret == nil {
		return nil
	}
	text, err := t.box.Open(t.Of.SealedInput, t.Of.InputContext())
	if err != nil {
		return err
	}
	return json.Unmarshal(text, t.secret(&t.Input))
}

// refused is the report of what an agent has refused for good. About a moment it says what the agent says.
func refused(err error) command.Look {
	l := command.Look{State: command.LookFailed, Reason: base.ReasonShown(err)}
	var no *command.Refusal
	if l.Reason == command.ReasonNotRecoverable && errors.As(err, &no) {
		l.Message = no.Message
	}
	return l
}

// failed is what the operation fails with.
func (t turn[In, R]) failed(l command.Look) *fault.Error {
	switch l.Reason { //nolint:exhaustive // the others are those of every job
	case command.ReasonInvalid:
		return fault.Invalid(cmp.Or(l.Field, recovery.Field), "%s", cmp.Or(l.Message, "cannot be done"))
	case command.ReasonNameTaken:
		return fault.New(fault.DatabaseStateConflict, "%s", cmp.Or(l.Message, "there is something of that name already"))
	case command.ReasonTooLarge:
		return fault.New(fault.PlanLimit, "%s", cmp.Or(l.Message, "the database would become larger than the account allows"))
	}
	return base.JobFailed(l.Reason, l.Message, "the database server could not have the database back as it was; it is as it is",
		"the database server has no room to have the database back as it was")
}

// Ending implements work.Steps.
func (t turn[In, R]) Ending(on operation.Event, cause *fault.Error) work.Ending {
	return t.Logged(on, cause, t.finished, t.details(t.Input))
}
