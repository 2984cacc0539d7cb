package apiclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// part is an answer with a file, or with the rest of one.
type part struct {
	response *http.Response
	ctx      context.Context
	cancel   context.CancelCauseFunc
	stall    time.Duration
	timer    *time.Timer
}

var errStalled error = unanswered{errors.New("nothing came for too long"), true}

// openPart waits for the header of an answer. A refusal is an *Error.
func (c *Client) openPart(ctx context.Context, r Request) (*part, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(attemptTimeout, func() { cancel(errStalled) })
	response, err := c.open(ctx, r) //nolint:bodyclose // the part does, or checkFile
	if err == nil {
		err = checkFile(r, response)
	}
	timer.Stop()
	if err != nil {
		err = stalled(ctx, err)
		cancel(nil)
		return nil, err
	}
	return &part{response, ctx, cancel, c.stall, timer}, nil
}

// checkFile closes an answer that has no file.
func checkFile(r Request, response *http.Response) error {
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusPartialContent:
		if r.Header.Get("Range") != "" {
			return nil
		}
	}
	text, err := readAll(response)
	if err == nil {
		err = refusal(text)
	}
	if err == nil {
		err = permanent{fmt.Errorf("apiclient: %s: the answer %d is no file", r.Path, response.StatusCode)}
	}
	return err
}

// stalled says that an attempt was ended here.
func stalled(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	return err
}

// Read implements io.Reader. The time that the caller takes between two calls does not count.
func (p *part) Read(b []byte) (n int, err error) {
	p.timer.Reset(p.stall)
	defer p.timer.Stop()
	if n, err = p.response.Body.Read(b); err != nil {
		err = stalled(p.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (p *part) Close() error {
	p.cancel(nil)
	return p.response.Body.Close()
}
