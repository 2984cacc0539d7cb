package apiclient

import (
	"context"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Allowlist are the calls about the networks that may connect to a database.
type Allowlist struct{ c *Client }

const allowlistPath = "/databases/%s/network/allowlist"

// List reads the allowlist of a database.
func (a Allowlist) List(ctx context.Context, database id.DatabaseID, opts ...Option) ([]wire.AllowlistEntry, error) {
	return data[[]wire.AllowlistEntry](ctx, a.c, get(allowlistPath, string(database)), opts)
}

// Add allows a network to connect.
func (a Allowlist) Add(
	ctx context.Context, database id.DatabaseID, b wire.AddAllowlistEntry, opts ...Option,
) (wire.AllowlistEntry, error) {
	return data[wire.AllowlistEntry](ctx, a.c, post(b, allowlistPath, string(database)), opts)
}

// Remove removes a network.
func (a Allowlist) Remove(ctx context.Context, database id.DatabaseID, entry id.AllowlistEntryID, opts ...Option) error {
	return tell(ctx, a.c, remove(allowlistPath+"/%s", string(database), string(entry)).ofGone(fault.AllowlistEntryNotFound), opts)
}
