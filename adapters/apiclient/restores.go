package apiclient

import (
	"context"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// Restores are the calls that restore databases in place.
type Restores struct{ c *Client }

// Reserve reserves a managed restore, which changes nothing yet: Advance does.
func (r Restores) Reserve(
	ctx context.Context, database id.DatabaseID, b wire.ReserveRestore, opts ...Option,
) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, r.c, post(b, "/databases/%s/managed-restores", string(database)).withKey(), opts)
}

// Advance does the next step of a managed restore. It is called until the operation has succeeded.
func (r Restores) Advance(ctx context.Context, operation id.OperationID, opts ...Option) (wire.Operation, error) {
	return ask[wire.Operation](ctx, r.c, post(nil, "/operations/%s/managed-restore/advance", string(operation)).mayRepeat(), opts)
}

// Start queues a restore of a database that has a single login. The body confirms that its connections are closed.
func (r Restores) Start(
	ctx context.Context, database id.DatabaseID, file backup.Filename, b wire.Disconnect, opts ...Option,
) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, r.c, post(b, backupsPath+"/%s", string(database), string(file)), opts)
}
