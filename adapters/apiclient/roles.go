package apiclient

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// Roles are the calls about the additional roles of a managed database.
type Roles struct{ RoleCalls }

// RoleCalls are the calls that additional roles of both kinds have.
type RoleCalls struct {
	c    *Client
	list string // the path
}

const (
	customRolesPath = "/databases/%s/custom-roles"
	legacyRolesPath = "/databases/%s/legacy-roles"
)

func (r RoleCalls) one() string { return r.list + "/%s" }

// List reads the roles of a database that are not revoked.
func (r RoleCalls) List(ctx context.Context, database id.DatabaseID, opts ...Option) ([]wire.ListedRole, error) {
	answer, err := ask[wire.Roles[wire.ListedRole]](ctx, r.c, get(r.list, string(database)), opts)
	return answer.Roles, err
}

// ListAll reads the roles of a database, revoked ones too.
func (r RoleCalls) ListAll(ctx context.Context, database id.DatabaseID, opts ...Option) ([]wire.ListedRole, error) {
	path := r.list + "?includeRevoked=true"
	answer, err := ask[wire.Roles[wire.ListedRole]](ctx, r.c, get(path, string(database)), opts)
	return answer.Roles, err
}

// Create creates a role, or goes on with its creation.
func (r RoleCalls) Create(ctx context.Context, database id.DatabaseID, b wire.CreateRole, opts ...Option) (wire.Role, error) {
	return ask[wire.Role](ctx, r.c, post(b, r.list, string(database)).withKey(), opts)
}

// Prepare creates a reserved role on the server.
func (r Roles) Prepare(ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option) (wire.RoleSetup, error) {
	return ask[wire.RoleSetup](ctx, r.c, post(nil, r.one()+"/prepare", string(database), string(role)).mayRepeat(), opts)
}

// Admit allows a prepared role to log in.
func (r RoleCalls) Admit(ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option) (wire.RoleSetup, error) {
	return ask[wire.RoleSetup](ctx, r.c, post(nil, r.one()+"/admit", string(database), string(role)).mayRepeat(), opts)
}

// Rename changes the display name of a role.
func (r Roles) Rename(
	ctx context.Context, database id.DatabaseID, role id.RoleID, b wire.RenameRole, opts ...Option,
) (wire.RoleLabel, error) {
	return ask[wire.RoleLabel](ctx, r.c, patch(b, r.one(), string(database), string(role)), opts)
}

// Reveal reveals the password of a role.
func (r RoleCalls) Reveal(
	ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option,
) (wire.RevealedRole, error) {
	return ask[wire.RevealedRole](ctx, r.c, post(nil, r.one()+"/credentials", string(database), string(role)).mayRepeat(), opts)
}

// Delete revokes a role and removes it. While the answer's Status is "pending", it wants to be called again.
func (r Roles) Delete(
	ctx context.Context, database id.DatabaseID, role id.RoleID, b wire.DeleteRole, opts ...Option,
) (wire.RoleRemoval, error) {
	return r.removal(ctx, role, post(b, r.one()+"/delete", string(database), string(role)).mayRepeat(), opts)
}

// Remove removes a role that is revoked. While the answer's Status is "pending", it wants to be called again.
func (r RoleCalls) Remove(
	ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option,
) (wire.RoleRemoval, error) {
	return r.removal(ctx, role, remove(r.one(), string(database), string(role)), opts)
}

func (r RoleCalls) removal(ctx context.Context, of id.RoleID, c call, opts []Option) (wire.RoleRemoval, error) {
	now, err := ask[wire.RoleRemoval](ctx, r.c, c.ofGone(fault.RoleNotFound), opts)
	if errors.Is(err, errRemovedBefore) {
		return wire.RoleRemoval{RoleID: of, Status: string(role.Removed)}, nil
	}
	return now, err
}

// LegacyRoles are the calls about the additional roles of a database with a single login. Remove revokes a ready one first.
type LegacyRoles struct{ RoleCalls }

// OptIn makes the overlay that such roles stand on. While the answer's Status is "reserved", it wants to be called again.
func (r LegacyRoles) OptIn(ctx context.Context, database id.DatabaseID, opts ...Option) (wire.Overlay, error) {
	return ask[wire.Overlay](ctx, r.c, post(nil, r.list+"/opt-in", string(database)).mayRepeat(), opts)
}

// Prepare creates a reserved role on the server, and answers what the owner has to grant.
func (r LegacyRoles) Prepare(
	ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option,
) (wire.ConnectGrant, error) {
	return ask[wire.ConnectGrant](ctx, r.c, post(nil, r.one()+"/prepare", string(database), string(role)).mayRepeat(), opts)
}

// Reconcile finds out what has become of the last step of a role.
func (r LegacyRoles) Reconcile(
	ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option,
) (wire.ListedRole, error) {
	return ask[wire.ListedRole](ctx, r.c, post(nil, r.one()+"/reconcile", string(database), string(role)).mayRepeat(), opts)
}
