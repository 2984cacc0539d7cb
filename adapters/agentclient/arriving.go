package agentclient

import (
	"context"
	"errors"
	"io"
	"time"
)

var errNothingCame = errors.New("the agent sent nothing more of its answer in time")

// arriving is an answer as an agent sends it. Each read has its own limit: an agent that hangs would otherwise hold a worker, or
// the slot of a download, for ever. The time between two reads, when the customer has its turn, does not count.
type arriving struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	limit  time.Duration
}

func (a *arriving) Read(p []byte) (int, error) {
	late := time.AfterFunc(a.limit, func() { a.cancel(errNothingCame) })
	defer late.Stop()
	n, err := a.ReadCloser.Read(p)
	if err != nil && errors.Is(context.Cause(a.ctx), errNothingCame) {
		err = errNothingCame
	}
	return n, err
}

// Close implements io.Closer.
func (a *arriving) Close() error {
	defer a.cancel(nil)
	return a.ReadCloser.Close()
}
