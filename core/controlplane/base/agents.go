package base

import (
	"context"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// AgentOf returns the agent of a registered server.
func (p *Base) AgentOf(ctx context.Context, serverID id.ServerID) (ports.Agent, error) {
	_, agent, err := p.ServerOf(ctx, serverID)
	return agent, err
}

// ServerOf returns a registered server and its agent.
func (p *Base) ServerOf(ctx context.Context, serverID id.ServerID) (s server.Server, agent ports.Agent, err error) {
	if s, err = p.server(ctx, serverID); err == nil {
		agent, err = p.Fleet.Agent(s)
	}
	return s, agent, err
}

func (p *Base) server(ctx context.Context, of id.ServerID) (server.Server, error) {
	return ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) (server.Server, error) {
		return tx.Servers().Get(ctx, of)
	})
}

// PostgresOf returns the major version of a server's PostgreSQL. Its agent is asked where nobody has asked it yet. AGENT_ERROR:
// it does not say.
func PostgresOf(ctx context.Context, s server.Server, agent ports.Agent) (int, error) {
	if s.PostgresVersion != 0 {
		return s.PostgresVersion, nil
	}
	can, err := ports.Ask(ctx, agent, command.AskCapabilities{})
	if err != nil || can.PostgresVersion == 0 {
		return 0, fault.Wrap(err, fault.AgentError, "the agent of %s does not say which PostgreSQL it has", s.Name)
	}
	return can.PostgresVersion, nil
}

// Record returns a database, also a deleted one; ErrNoRow when there is none.
func (p *Base) Record(ctx context.Context, db id.DatabaseID) (database.Record, error) {
	return ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) (database.Record, error) {
		return tx.Databases().Get(ctx, db)
	})
}

// DatabaseAndAgent returns what an operation works on: its database, also a deleted one, and the agent of its server. No lock is
// needed: the lease excludes other work.
func (p *Base) DatabaseAndAgent(
	ctx context.Context, o operation.Operation,
) (record database.Record, agent ports.Agent, err error) {
	if record, err = p.Record(ctx, o.DatabaseID); err == nil {
		agent, err = p.AgentOf(ctx, record.ServerID)
	}
	return record, agent, err
}

// reachable asks a server for a sign of life. ReasonOtherProtocol: it answers, and carries out nothing.
func (p *Base) reachable(ctx context.Context, s id.ServerID) error {
	agent, err := p.AgentOf(ctx, s)
	if err != nil {
		return err
	}
	known, err := ports.Ask(ctx, agent, command.AskCapabilities{})
	if err != nil {
		return err
	}
	return CheckProtocol(known)
}

// CheckProtocol refuses an agent that has another protocol than this host.
func CheckProtocol(known command.Capabilities) error {
	if known.Protocol == command.Protocol {
		return nil
	}
	return command.Refuse(command.ReasonOtherProtocol, "the agent is of version %s and has protocol %d, this host %d",
		known.Version, known.Protocol, command.Protocol)
}
