package roles

import (
	"context"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// stuck reports whether the server refuses a change for good, so that sending it again shows nothing new.
func stuck(err error) bool { return refusalOf(err) != "" }

// refusalOf is the text of such a refusal; empty for every other error. A refusal for the generation is none: the next attempt
// moves past it, or begins a removal anew.
func refusalOf(err error) string {
	var refusal *command.Refusal
	if !errors.As(err, &refusal) || base.Superseded(err) {
		return ""
	}
	if base.RefusedForGood(err) {
		return refusal.Error()
	}
	return ""
}

// settleRefused ends a change that the server refuses for good, if a look at the login shows what has become of it. Otherwise
// the change stays pending and is tried again: the cause may be mended on the server, and an operator can end it.
func (a *attempt) settleRefused(ctx context.Context, refusal error) (work.Next, error) {
	seen, err := a.lookBeforeEnd(ctx, func(s role.Observation) bool {
		on, _ := a.change.Settled(s)
		return on != role.Postponed
	})
	on, of := a.change.Settled(seen)
	if err != nil || on == role.Postponed {
		return a.postpone(ctx, errors.Join(refusal, err))
	}
	return a.end(ctx, verdict{
		change: on, role: of, seen: seen, refusal: refusalOf(refusal), actor: audit.System,
		entry: endDetails(a.change, seen, refusal.Error()),
	})
}

// giveUp ends the change on an operator's order, after a look at its login. The password that the server has stored is the one
// that is kept: the new one of a rotation that got so far, otherwise the current one. Where the server is gone, nothing is looked
// at.
func (d *driver) giveUp(ctx context.Context, job *work.Job[work.None], by operation.Order) (work.Next, error) {
	a, err := d.newAttempt(ctx, job)
	if err != nil {
		return work.Next{}, err
	}
	seen := role.Unseen
	if !by.ServerGone {
		if seen, err = a.lookBeforeEnd(ctx, func(role.Observation) bool { return true }); err != nil {
			return work.Next{}, fault.Wrap(err, fault.AgentError,
				"the login cannot be looked at, so the change is still pending: %s%s", err, base.OrGone)
		}
		if err := a.base.CheckThere(ctx, a.record.ServerID, base.OrGone); err != nil {
			return work.Next{}, err
		}
	}
	v := verdict{seen: seen, actor: audit.Operator, entry: endDetails(a.change, seen, by.Reason)}
	v.change, v.role = a.change.CutShort(seen)
	v.entry["operator"] = by.By
	v.refusal = "ended by an operator: " + by.Reason
	return a.end(ctx, v)
}

// lookBeforeEnd looks at the login of a change. Where that is enough to end the change, it has the agent carry out no command
// of it any more, and looks again: one may have been under way.
func (a *attempt) lookBeforeEnd(ctx context.Context, enough func(role.Observation) bool) (role.Observation, error) {
	seen, err := a.look(ctx)
	if err != nil || !enough(seen) {
		return seen, err
	}
	if err := a.Close(ctx, a.agent); err != nil {
		return seen, err
	}
	return a.look(ctx)
}

// look compares what the server has stored for the login with the new password, if there is one, and with the current one.
func (a *attempt) look(ctx context.Context) (role.Observation, error) {
	ask := func(verifier string) (command.LoginCondition, error) {
		if verifier == "" { // no password that the server could have: any other tells whether there is a login
			_, verifier = a.newPassword()
		}
		question := command.InspectLogin{DatabaseID: a.record.ID, Username: a.change.Username, Verifier: verifier}
		login, err := ports.Ask(ctx, a.agent, question)
		return login.Condition, err
	}
	observed := map[command.LoginCondition]role.Observation{
		command.LoginInForce: role.OldInForce, command.LoginShut: role.OldShut, command.LoginAbsent: role.NoLogin,
		command.LoginDrifted: role.NeitherPassword,
	}
	if a.change.Kind == role.Rotation {
		switch condition, err := ask(a.change.Verifier); {
		case err != nil:
			return "", err
		case condition == command.LoginInForce:
			return role.NewInForce, nil
		case condition == command.LoginShut:
			return role.NewShut, nil
		}
	}
	condition, err := ask(a.current.verifier)
	if err != nil {
		return "", err
	}
	seen, known := observed[condition]
	if !known {
		return "", fmt.Errorf("the agent calls the login %q", condition)
	}
	return seen, nil
}

// endDetails tell the activity log how a change ended without an agent's answer.
func endDetails(c role.Change, seen role.Observation, reason string) audit.Details {
	return audit.Details{
		"operationId": string(c.ID), "username": c.Username, "kind": string(c.Kind), "found": string(seen), "reason": reason,
	}
}
