package agentclient

import (
	"context"
	"net/http"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/ports"
)

// Connections implements ports.Agent.
func (c *client) Connections(ctx context.Context) (int, error) {
	var known protocol.Capabilities
	err := c.exchange(ctx, route{method: http.MethodGet, path: "/v1/capabilities"}, nil, &known)
	if err == nil && known.Connections == 0 {
		err = &ports.AgentRefusal{Reason: ports.ReasonUnavailable, Message: "the agent does not say how many connections there are"}
	}
	return known.Connections, err
}

// Ready implements ports.Agent. An agent that answers while PostgreSQL or PgBouncer is down is ReasonUnavailable; one that is
// degraded for another reason is ready.
func (c *client) Ready(ctx context.Context) error {
	var health protocol.Health
	if err := c.exchange(ctx, route{method: http.MethodGet, path: "/health"}, nil, &health); err != nil {
		return err
	}
	switch {
	case !health.PostgresConnected:
		return &ports.AgentRefusal{Reason: ports.ReasonUnavailable, Message: "PostgreSQL is down"}
	case !health.PgBouncerRunning:
		return &ports.AgentRefusal{Reason: ports.ReasonUnavailable, Message: "PgBouncer is down"}
	}
	return nil
}
