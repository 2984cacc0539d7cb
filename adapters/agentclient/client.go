package agentclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/ports"
)

// maxAnswer bounds every answer except backup files, in bytes.
const maxAnswer = 1 << 20

// client implements ports.Agent for one server.
type client struct {
	base          string // without a slash at the end
	authorization string // of every request; a secret
	userAgent     string
	server        id.ServerID
	tracer        trace.Tracer
	calls         pool
	downloads     pool
}

func (c *client) closeIdle() {
	c.calls.CloseIdleConnections()
	c.downloads.CloseIdleConnections()
}

// send does one round trip and returns the answer, whatever its status; the caller closes its body, which is an error where it
// does not come in time. A transport follows no redirects. Because the request's body can be read again, the transport replaces a
// connection that died before the first byte was sent; after that it never repeats a command, since that is a POST.
func (c *client) send(ctx context.Context, p pool, method, path string, body []byte) (*http.Response, error) {
	req, err := c.request(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	return roundTrip(ctx, p, req)
}

func (c *client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ports.ErrAgentUnreachable, err)
	}
	req.Header.Set("Authorization", c.authorization)
	req.Header.Set(protocol.Header, strconv.Itoa(command.Protocol))
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Accept", "*/*")
	if parent := c.tracer.Parent(ctx); parent != "" {
		req.Header.Set(trace.Header, parent)
	}
	return req, nil
}

func roundTrip(ctx context.Context, p pool, req *http.Request) (*http.Response, error) {
	var d delivery
	ctx, cancel := context.WithCancelCause(d.watch(ctx))
	resp, err := p.RoundTrip(req.WithContext(ctx))
	if err == nil {
		resp.Body = &arriving{resp.Body, ctx, cancel, p.wait}
		return resp, nil
	}
	cancel(nil)
	switch {
	case d.giveUp():
		return nil, fmt.Errorf("%w: %s: %w", ports.ErrAgentUnreachable, req.URL.Host, err)
	default:
		return nil, unknown(fmt.Errorf("%s: %w", req.URL.Host, err))
	}
}

// begin begins the span of a call, until its answer or, of a download, until the file begins.
func (c *client) begin(ctx context.Context, kind string, of id.OperationID) (context.Context, func(error)) {
	ctx, ended := c.tracer.Begin(ctx, trace.Span{Name: "agent " + kind, Operation: of, Server: c.server})
	return ctx, func(err error) {
		var no *command.Refusal
		outcome := ""
		if errors.As(err, &no) {
			outcome = string(no.Reason)
		}
		ended(outcome, err != nil)
	}
}

// exchange sends a request and returns its answer.
func (c *client) exchange(ctx context.Context, r command.Route, path string, body []byte) ([]byte, error) {
	resp, err := c.send(ctx, c.calls, r.Method, path, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return answerOf(r, resp)
}

// answerOf returns the body of a 200, or nothing for a 204.
func answerOf(r command.Route, resp *http.Response) ([]byte, error) {
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNoContent {
		return nil, refusal(r, resp)
	}
	text, err := readBounded(resp.Body, maxAnswer)
	if err != nil {
		return nil, unknown(err)
	}
	return text, nil
}

// unknown marks an error after which the agent may or may not have done the work.
func unknown(err error) error { return fmt.Errorf("the outcome at the agent is unknown: %w", err) }

var errBrokeOff = errors.New("its answer broke off")

// readBounded reads everything, and fails if that is more than limit bytes.
func readBounded(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errBrokeOff, err)
	case int64(len(text)) > limit:
		return nil, fmt.Errorf("its answer is longer than %d bytes", limit)
	}
	return text, nil
}
