package apiclient

import (
	"context"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// QueryTimeouts are the calls about the query timeouts of a database.
type QueryTimeouts struct{ c *Client }

const timeoutsPath = "/databases/%s/query-timeouts"

// Get reads what is wanted and what is in force.
func (q QueryTimeouts) Get(ctx context.Context, database id.DatabaseID, opts ...Option) (wire.QueryTimeouts, error) {
	return data[wire.QueryTimeouts](ctx, q.c, get(timeoutsPath, string(database)), opts)
}

// Set chooses a profile. The change is open where the operation of the answer has no final status yet.
func (q QueryTimeouts) Set(
	ctx context.Context, database id.DatabaseID, b wire.SetQueryTimeouts, opts ...Option,
) (wire.QueryTimeouts, error) {
	return data[wire.QueryTimeouts](ctx, q.c, post(b, timeoutsPath, string(database)).withKey(), opts)
}
