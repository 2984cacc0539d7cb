package agentclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/ports"
)

// Send implements ports.Agent. The bytes are streamed, and only once the agent wants them: a refusal comes before the first. An
// agent that takes no more of them for Options.DownloadWait ends it.
func (c *client) Send(ctx context.Context, q command.Question, size int64, body io.Reader) (json.RawMessage, error) {
	path, _, err := protocol.WriteQuestion(q)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ports.ErrAgentUnreachable, err)
	}
	ctx, ended := c.begin(ctx, q.Route().Path, "")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := newLeaving(io.LimitReader(body, size), c.downloads.wait, func() { cancel(errNothingTaken) })
	answer, err := c.sendBytes(ctx, q.Route(), path, size, out)
	ended(err)
	cancel(nil)
	failed := out.stop()
	switch {
	case err == nil:
		return answer, nil
	case failed != nil:
		return nil, unknown(failed)
	case errors.Is(context.Cause(ctx), errNothingTaken):
		return nil, unknown(errNothingTaken)
	}
	return nil, err
}

func (c *client) sendBytes(ctx context.Context, r command.Route, path string, size int64, body io.Reader) ([]byte, error) {
	req, err := c.request(ctx, r.Method, path, body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Expect", "100-continue")
	resp, err := roundTrip(ctx, c.downloads, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return answerOf(r, resp)
}

var errNothingTaken = errors.New("the agent took nothing more of the upload in time")

// leaving is what an agent is sent. The time between two reads, when the agent has its turn, has a limit; that of a read, when
// the customer has it, does not count. A transport may go on reading when it has returned already: nothing is read after stop.
type leaving struct {
	limit time.Duration

	mu      sync.Mutex
	from    io.Reader
	late    *time.Timer
	stopped bool
	failure error
}

func newLeaving(from io.Reader, limit time.Duration, giveUp func()) *leaving {
	l := &leaving{from: from, limit: limit, late: time.AfterFunc(limit, giveUp)}
	l.late.Stop() // whatever comes before the first read has limits of its own
	return l
}

// Read implements io.Reader.
func (l *leaving) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return 0, errGivenUp
	}
	l.late.Stop()
	n, err := l.from.Read(p)
	switch {
	case err == nil:
		l.late.Reset(l.limit)
	case !errors.Is(err, io.EOF):
		l.failure = err
	}
	return n, err
}

// stop waits for a read to end, and returns why the last one failed.
func (l *leaving) stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.late.Stop()
	return l.failure
}
