package operator

import (
	"context"
	"strconv"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Lacking are the operations that a server has heard of and the metadata lack. AGENT_ERROR: it does not say.
func (o *Operator) Lacking(ctx context.Context, s server.Server) ([]id.OperationID, error) {
	agent, err := o.base.Fleet.Agent(s)
	if err != nil {
		return nil, err
	}
	heard, err := ports.Ask(ctx, agent, command.AskHeard{})
	if err != nil {
		return nil, fault.Wrap(err, fault.AgentError, "the server cannot say which operations it has heard of: %s", err)
	}
	return o.base.Lacking(ctx, heard)
}

// ConfirmMetadata has a server forget the operations that it has heard of: the metadata count, although they lack some. Once
// that is so of all servers, what ends by time goes on. VALIDATION_ERROR on "reason". AGENT_ERROR: the server has not confirmed
// it: repeat.
func (o *Operator) ConfirmMetadata(ctx context.Context, s server.Server, by operation.Order) error {
	if err := by.Check(); err != nil {
		return err
	}
	lacking, err := o.Lacking(ctx, s)
	if err != nil || len(lacking) == 0 {
		return err
	}
	agent, err := o.base.Fleet.Agent(s)
	if err != nil {
		return err
	}
	err = o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return o.record(ctx, tx, "", audit.MetadataConfirmed, audit.Details{
			"serverId": string(s.ID), "operator": by.By, "reason": by.Reason, "operations": strconv.Itoa(len(lacking)),
		})
	})
	if err != nil {
		return err
	}
	if _, err := ports.Ask(ctx, agent, command.Vouch{All: true}); err != nil {
		return fault.Wrap(err, fault.AgentError, "the server has not confirmed it: repeat the command")
	}
	return nil
}
