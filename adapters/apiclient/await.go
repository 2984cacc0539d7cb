package apiclient

import (
	"context"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// Await reads an operation until it has ended, however it ends, with a pause between two looks.
func (o Operations) Await(
	ctx context.Context, operation id.OperationID, pause time.Duration, opts ...Option,
) (wire.Operation, error) {
	for {
		now, err := o.Get(ctx, operation, opts...)
		if err != nil || now.Status.Final() {
			return now, err
		}
		if !sleep(ctx, pause) {
			why := or(ctx.Err(), context.DeadlineExceeded)
			return now, fmt.Errorf("apiclient: operation %s is %s (%s): %w", operation, now.Status, now.Stage, why)
		}
	}
}
