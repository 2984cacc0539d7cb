package agentclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/ports"
)

// Ask implements ports.Agent.
func (c *client) Ask(ctx context.Context, q command.Question) (json.RawMessage, error) {
	path, body, err := protocol.WriteQuestion(q)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ports.ErrAgentUnreachable, err)
	}
	ctx, ended := c.begin(ctx, q.Route().Path, "")
	text, err := c.exchange(ctx, q.Route(), path, body)
	ended(err)
	return text, err
}

// Open implements ports.Agent. The file is streamed: the end of ctx closes it, and a truncated file ends in an error, never in
// io.EOF. So does one of which nothing comes for Options.DownloadWait.
func (c *client) Open(ctx context.Context, q command.Question) (ports.File, error) {
	path, body, err := protocol.WriteQuestion(q)
	if err != nil {
		return ports.File{}, fmt.Errorf("%w: %w", ports.ErrAgentUnreachable, err)
	}
	ctx, ended := c.begin(ctx, q.Route().Path, "")
	resp, err := c.send(ctx, c.downloads, q.Route().Method, path, body)
	ended(err)
	if err != nil {
		return ports.File{}, err
	}
	switch {
	case resp.StatusCode != http.StatusOK:
		err = refusal(q.Route(), resp)
	case resp.ContentLength < 0:
		err = unknown(errors.New("it does not say how long the file is"))
	default:
		return ports.File{Body: resp.Body, Size: resp.ContentLength}, nil
	}
	resp.Body.Close()
	return ports.File{}, err
}
