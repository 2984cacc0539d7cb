package controlplane

import (
	"context"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// beginFailing commits what the operation fails with, while its flow still has something to take back. After a crash the flow
// goes on with that, see failure, and does not try again.
func (h *held) beginFailing(
	ctx context.Context, stage string, cause *fault.Error, also func(context.Context, ports.Tx) error,
) error {
	return h.save(ctx, func(o *operation.Operation) {
		o.Stage, o.ErrorCode, o.ErrorText = stage, cause.Code, cause.Message
	}, also)
}

// failure is what beginFailing or finish has committed; nil if there is nothing.
func (h *held) failure() *fault.Error {
	if f := h.operation().Failure(); f != nil {
		return fault.New(f.Code, "%s", f.Message)
	}
	return nil
}

// outcome is what the caller of a finished operation gets: nil, or the *fault.Error that it failed with.
func (h *held) outcome() error {
	f := h.failure()
	if f != nil && h.cause != nil {
		f = h.cause
	}
	return errOrNil(f)
}

func errOrNil(e *fault.Error) error {
	if e == nil {
		return nil
	}
	return e
}
