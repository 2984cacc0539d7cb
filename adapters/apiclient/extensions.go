package apiclient

import (
	"context"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// Extensions are the calls about PostgreSQL extensions.
type Extensions struct{ c *Client }

const extensionsPath = "/databases/%s/extensions"

// List reads the catalog, as the database has it.
func (x Extensions) List(ctx context.Context, database id.DatabaseID, opts ...Option) ([]wire.Extension, error) {
	return data[[]wire.Extension](ctx, x.c, get(extensionsPath, string(database)), opts)
}

// Change installs or upgrades an extension. The operation may have ended, where the request was made before.
func (x Extensions) Change(
	ctx context.Context, database id.DatabaseID, b wire.ChangeExtension, opts ...Option,
) (wire.ExtensionOperation, error) {
	return ask[wire.ExtensionOperation](ctx, x.c, post(b, extensionsPath+"/operations", string(database)).withKey(), opts)
}

// Get reads an operation on an extension, which also checks its progress.
func (x Extensions) Get(
	ctx context.Context, database id.DatabaseID, operation id.OperationID, opts ...Option,
) (wire.ExtensionOperation, error) {
	return ask[wire.ExtensionOperation](ctx, x.c, get(extensionsPath+"/operations/%s", string(database), string(operation)), opts)
}
