package apiclient

import (
	"context"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

func (r RoleCalls) change() string { return r.one() + "/changes/%s" }

// Change rotates the password of a role, or revokes the role.
func (r RoleCalls) Change(
	ctx context.Context, database id.DatabaseID, role id.RoleID, b wire.ChangeRole, opts ...Option,
) (wire.RoleChange, error) {
	return ask[wire.RoleChange](ctx, r.c, post(b, r.one()+"/changes", string(database), string(role)).withKey(), opts)
}

// GetChange reads a change of a role.
func (r RoleCalls) GetChange(
	ctx context.Context, database id.DatabaseID, role id.RoleID, change id.OperationID, opts ...Option,
) (wire.RoleChange, error) {
	return ask[wire.RoleChange](ctx, r.c, get(r.change(), string(database), string(role), string(change)), opts)
}

// ContinueChange goes on with a pending change; one that is completed stays as it is.
func (r RoleCalls) ContinueChange(
	ctx context.Context, database id.DatabaseID, role id.RoleID, change id.OperationID, b wire.Disconnect, opts ...Option,
) (wire.RoleChange, error) {
	again := post(b, r.change(), string(database), string(role), string(change)).mayRepeat()
	return ask[wire.RoleChange](ctx, r.c, again, opts)
}
