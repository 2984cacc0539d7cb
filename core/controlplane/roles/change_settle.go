package roles

import (
	"context"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
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
func (d *driver) settleRefused(ctx context.Context, j changeJob, refusal error) (outcome, error) {
	agent, err := d.base.AgentOf(ctx, j.record.ServerID)
	if err != nil {
		return d.postpone(ctx, j, errors.Join(refusal, err))
	}
	seen, err := d.lookBeforeEnd(ctx, agent, j, func(s role.Observation) bool {
		on, _ := j.change.Settled(s)
		return on != role.Postponed
	})
	on, of := j.change.Settled(seen)
	if err != nil || on == role.Postponed {
		return d.postpone(ctx, j, errors.Join(refusal, err))
	}
	return d.endChange(ctx, j, verdict{
		change: on, role: of, refusal: refusalOf(refusal), actor: audit.System,
		entry: endDetails(j.change, seen, refusal.Error()),
	})
}

// lookBeforeEnd looks at the login of a change. Where that is enough to end the change, it has the agent carry out no command
// of it any more, and looks again: one may have been under way.
func (d *driver) lookBeforeEnd(
	ctx context.Context, agent ports.Agent, j changeJob, enough func(role.Observation) bool,
) (role.Observation, error) {
	seen, err := d.look(ctx, agent, j)
	if err != nil || !enough(seen) {
		return seen, err
	}
	if err := ports.Close(ctx, agent, ports.Fence{OperationID: j.change.ID}); err != nil {
		return seen, err
	}
	return d.look(ctx, agent, j)
}

// look compares what the server has stored for the login with the new password, if there is one, and with the current one.
func (d *driver) look(ctx context.Context, agent ports.Agent, j changeJob) (role.Observation, error) {
	ask := func(verifier string) (command.LoginCondition, error) {
		if verifier == "" { // no password that the server could have: any other tells whether there is a login
			_, verifier = d.newPassword()
		}
		question := command.InspectLogin{DatabaseID: j.record.ID, Username: j.change.Username, Verifier: verifier}
		login, err := ports.Ask(ctx, agent, question)
		return login.Condition, err
	}
	observed := map[command.LoginCondition]role.Observation{
		command.LoginInForce: role.OldInForce, command.LoginShut: role.OldShut, command.LoginAbsent: role.NoLogin,
		command.LoginDrifted: role.NeitherPassword,
	}
	if j.change.Kind == role.Rotation {
		switch condition, err := ask(j.change.Verifier); {
		case err != nil:
			return "", err
		case condition == command.LoginInForce:
			return role.NewInForce, nil
		case condition == command.LoginShut:
			return role.NewShut, nil
		}
	}
	condition, err := ask(j.current.verifier)
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
