package apiclient

import (
	"context"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

const changePath = rolePath + "/changes/%s"

// Change rotates the password of a role, or revokes the role.
func (r Roles) Change(
	ctx context.Context, database id.DatabaseID, role id.RoleID, b wire.ChangeRole, opts ...Option,
) (wire.RoleChange, error) {
	return ask[wire.RoleChange](ctx, r.c, post(b, rolePath+"/changes", string(database), string(role)).withKey(), opts)
}

// GetChange reads a change of a role.
func (r Roles) GetChange(
	ctx context.Context, database id.DatabaseID, role id.RoleID, change id.OperationID, opts ...Option,
) (wire.RoleChange, error) {
	return ask[wire.RoleChange](ctx, r.c, get(changePath, string(database), string(role), string(change)), opts)
}

// ContinueChange goes on with a pending change; one that is completed stays as it is.
func (r Roles) ContinueChange(
	ctx context.Context, database id.DatabaseID, role id.RoleID, change id.OperationID, b wire.Disconnect, opts ...Option,
) (wire.RoleChange, error) {
	again := post(b, changePath, string(database), string(role), string(change)).untilDone()
	return ask[wire.RoleChange](ctx, r.c, again, opts)
}
