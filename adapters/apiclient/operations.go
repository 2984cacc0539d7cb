package apiclient

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// Operations are the calls about asynchronous work.
type Operations struct{ c *Client }

// List reads one page of the operations of a database, newest first.
func (o Operations) List(ctx context.Context, database id.DatabaseID, p Page, opts ...Option) (wire.Page[wire.Operation], error) {
	return listOf[wire.Operation](ctx, o.c, p, get("/databases/%s/operations", string(database)), opts)
}

// All reads every operation of a database, newest first.
func (o Operations) All(ctx context.Context, database id.DatabaseID, opts ...Option) iter.Seq2[wire.Operation, error] {
	return allOf[wire.Operation](ctx, o.c, get("/databases/%s/operations", string(database)), opts)
}

// Get reads an operation.
func (o Operations) Get(ctx context.Context, operation id.OperationID, opts ...Option) (wire.Operation, error) {
	return ask[wire.Operation](ctx, o.c, get("/operations/%s", string(operation)), opts)
}

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

// Cancel cancels an operation; one that runs ends a little later.
func (o Operations) Cancel(ctx context.Context, operation id.OperationID, opts ...Option) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, o.c, post(nil, "/operations/%s/cancel", string(operation)), opts)
}
