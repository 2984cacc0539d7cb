package apiclient

import (
	"context"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// Roles are the calls about the additional roles of a database.
type Roles struct{ c *Client }

const (
	rolesPath = "/databases/%s/custom-roles"
	rolePath  = rolesPath + "/%s"
)

// List reads the roles of a database that are not revoked.
func (r Roles) List(ctx context.Context, database id.DatabaseID, opts ...Option) ([]wire.ListedRole, error) {
	answer, err := ask[wire.Roles[wire.ListedRole]](ctx, r.c, get(rolesPath, string(database)), opts)
	return answer.Roles, err
}

// ListAll reads the roles of a database, revoked ones too.
func (r Roles) ListAll(ctx context.Context, database id.DatabaseID, opts ...Option) ([]wire.ListedRole, error) {
	path := rolesPath + "?includeRevoked=true"
	answer, err := ask[wire.Roles[wire.ListedRole]](ctx, r.c, get(path, string(database)), opts)
	return answer.Roles, err
}

// Create creates a role, or goes on with its creation.
func (r Roles) Create(ctx context.Context, database id.DatabaseID, b wire.CreateRole, opts ...Option) (wire.Role, error) {
	return ask[wire.Role](ctx, r.c, post(b, rolesPath, string(database)).withKey(), opts)
}

// Prepare creates a reserved role on the server.
func (r Roles) Prepare(ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option) (wire.RoleSetup, error) {
	return ask[wire.RoleSetup](ctx, r.c, post(nil, rolePath+"/prepare", string(database), string(role)), opts)
}

// Admit allows a prepared role to log in.
func (r Roles) Admit(ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option) (wire.RoleSetup, error) {
	return ask[wire.RoleSetup](ctx, r.c, post(nil, rolePath+"/admit", string(database), string(role)), opts)
}

// Rename changes the display name of a role.
func (r Roles) Rename(
	ctx context.Context, database id.DatabaseID, role id.RoleID, b wire.RenameRole, opts ...Option,
) (wire.RoleLabel, error) {
	return ask[wire.RoleLabel](ctx, r.c, patch(b, rolePath, string(database), string(role)), opts)
}

// Reveal reveals the password of a role.
func (r Roles) Reveal(ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option) (wire.RevealedRole, error) {
	return ask[wire.RevealedRole](ctx, r.c, post(nil, rolePath+"/credentials", string(database), string(role)), opts)
}

// Delete revokes a role and removes it. While the answer's Status is "pending", it wants to be called again.
func (r Roles) Delete(
	ctx context.Context, database id.DatabaseID, role id.RoleID, b wire.DeleteRole, opts ...Option,
) (wire.RoleRemoval, error) {
	return ask[wire.RoleRemoval](ctx, r.c, post(b, rolePath+"/delete", string(database), string(role)).untilDone(), opts)
}

// Remove removes a revoked role. While the answer's Status is "pending", it wants to be called again.
func (r Roles) Remove(ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option) (wire.RoleRemoval, error) {
	return ask[wire.RoleRemoval](ctx, r.c, remove(rolePath, string(database), string(role)), opts)
}
