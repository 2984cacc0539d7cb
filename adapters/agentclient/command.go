package agentclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/ports"
)

// commands is where every command goes.
var commands = command.Route{Method: http.MethodPost, Path: "/v1/commands"}

// Do implements ports.Agent.
func (c *client) Do(ctx context.Context, f ports.Fence, told command.Command) (json.RawMessage, error) {
	body, err := encode(f, told)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ports.ErrAgentUnreachable, err)
	}
	ctx, ended := c.begin(ctx, string(told.About().Kind), f.OperationID)
	var reply protocol.Reply
	text, err := c.exchange(ctx, commands, commands.Path, body)
	ended(err)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		return nil, unknown(fmt.Errorf("its answer to %s is not the JSON of the protocol", told.About().Kind))
	}
	return reply.Result, nil
}

// encode writes a command. The same command always has the same payload and hash.
func encode(f ports.Fence, c command.Command) ([]byte, error) {
	payload, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("writing the payload of %s: %w", c.About().Kind, err)
	}
	return json.Marshal(protocol.Command{
		Kind:        c.About().Kind,
		OperationID: string(f.OperationID),
		Epoch:       f.Epoch,
		Step:        command.Step(c),
		Resource:    c.About().Resource,
		Generation:  c.About().Generation,
		PayloadHash: protocol.Hash(payload),
		Payload:     payload,
		Secrets:     command.Secrets(c),
	})
}
