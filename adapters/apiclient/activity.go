package apiclient

import (
	"context"
	"iter"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// Activity are the calls about activity logs.
type Activity struct{ c *Client }

// List reads one page of the activity log of a database, newest first.
func (a Activity) List(ctx context.Context, database id.DatabaseID, p Page, opts ...Option) (wire.Page[wire.Activity], error) {
	return listOf[wire.Activity](ctx, a.c, p, get("/databases/%s/activity", string(database)), opts)
}

// All reads the whole activity log of a database, newest first.
func (a Activity) All(ctx context.Context, database id.DatabaseID, opts ...Option) iter.Seq2[wire.Activity, error] {
	return allOf[wire.Activity](ctx, a.c, get("/databases/%s/activity", string(database)), opts)
}
