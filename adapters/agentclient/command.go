package agentclient

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/ports"
)

// command is a protocol.Command before its payload is written. Its step is its kind unless one is given: no operation may have
// two commands with the same step, resource and generation.
type command struct {
	kind       protocol.Kind
	step       string
	fence      ports.Fence // zero for a command of no operation
	resource   string
	generation int64
	payload    any               // one of the protocol's payload types
	secrets    map[string]string // passwords by username
}

// encode writes the command. Payload types have no maps, and their lists have a canonical order, so the same command always has
// the same payload and hash.
func (c command) encode() ([]byte, error) {
	payload, err := json.Marshal(c.payload)
	if err != nil {
		return nil, fmt.Errorf("writing the payload of %s: %w", c.kind, err)
	}
	return json.Marshal(protocol.Command{
		Kind:        c.kind,
		OperationID: string(c.fence.OperationID),
		Epoch:       c.fence.Epoch,
		Step:        cmp.Or(c.step, string(c.kind)),
		Resource:    c.resource,
		Generation:  c.generation,
		PayloadHash: protocol.Hash(payload),
		Payload:     payload,
		Secrets:     c.secrets,
	})
}

// order sends a command. If out is not nil, it receives the result.
func (c *client) order(ctx context.Context, cmd command, out any) error {
	body, err := cmd.encode()
	if err != nil {
		return fmt.Errorf("%w: %w", ports.ErrAgentUnreachable, err)
	}
	var reply protocol.Reply
	if err := c.exchange(ctx, route{method: http.MethodPost, path: "/v1/commands"}, body, &reply); err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(reply.Result, out); err != nil {
		return unknown(fmt.Errorf("the result of %s is not the JSON of the protocol", cmd.kind))
	}
	return nil
}

// Close implements ports.Agent.
func (c *client) Close(ctx context.Context, f ports.Fence) error {
	return c.order(ctx, command{
		kind: protocol.CloseOperation, fence: f, generation: 1,
		resource: protocol.OperationResource(string(f.OperationID)), payload: struct{}{},
	}, nil)
}
