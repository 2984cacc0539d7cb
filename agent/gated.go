package agent

import (
	"context"
	"encoding/json"

	"github.com/pgherd/pgherd/agent/executor"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/id"
)

// gated lets requests through once the agent is in charge.
type gated struct{ *Agent }

var errNotInCharge = &executor.Refusal{Reason: protocol.ReasonUnavailable, Message: "the agent is not yet in charge"}

func (g gated) pass() error {
	if !g.inCharge.Load() {
		return errNotInCharge
	}
	return nil
}

// Execute implements server.Commands.
func (g gated) Execute(ctx context.Context, c protocol.Command) (json.RawMessage, error) {
	if err := g.pass(); err != nil {
		return nil, err
	}
	return g.executor.Execute(ctx, c)
}

// InspectLogin implements server.Commands.
func (g gated) InspectLogin(ctx context.Context, q protocol.LoginQuestion) (protocol.LoginAnswer, error) {
	if err := g.pass(); err != nil {
		return protocol.LoginAnswer{}, err
	}
	return g.executor.InspectLogin(ctx, q)
}

// SetAccounts implements server.Commands.
func (g gated) SetAccounts(ctx context.Context, accounts protocol.Accounts) error {
	if err := g.pass(); err != nil {
		return err
	}
	return g.executor.SetAccounts(ctx, accounts)
}

// Connections implements server.Commands.
func (g gated) Connections(ctx context.Context) (int, error) {
	if err := g.pass(); err != nil {
		return 0, err
	}
	return g.executor.Connections(ctx)
}

// Size implements server.Commands.
func (g gated) Size(ctx context.Context, db id.DatabaseID) (int64, error) {
	if err := g.pass(); err != nil {
		return 0, err
	}
	return g.executor.Size(ctx, db)
}
