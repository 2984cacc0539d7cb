package apiclient

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// RoleCalls are the calls that additional roles of both kinds have.
type RoleCalls interface {
	List(ctx context.Context, database id.DatabaseID, includeRevoked bool, opts ...Option) ([]wire.ListedRole, error)
	Create(ctx context.Context, database id.DatabaseID, b wire.CreateRole, opts ...Option) (wire.Role, error)
	Admit(ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option) (wire.RoleSetup, error)
	Reveal(ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option) (wire.RevealedRole, error)
	Change(ctx context.Context, database id.DatabaseID, role id.RoleID, b wire.ChangeRole, opts ...Option) (wire.RoleChange, error)
	GetChange(
		ctx context.Context, database id.DatabaseID, role id.RoleID, change id.OperationID, opts ...Option,
	) (wire.RoleChange, error)
	ContinueChange(
		ctx context.Context, database id.DatabaseID, role id.RoleID, change id.OperationID, b wire.Disconnect, opts ...Option,
	) (wire.RoleChange, error)
	Remove(ctx context.Context, database id.DatabaseID, role id.RoleID, opts ...Option) (wire.RoleRemoval, error)
}

// roles reads a list of roles or logins.
func roles[T any](ctx context.Context, c *Client, r call, opts []Option) ([]T, error) {
	answer, err := ask[wire.Roles[T]](ctx, c, r, opts)
	return answer.Roles, err
}

// removal makes a call that removes a role.
func removal(ctx context.Context, c *Client, of id.RoleID, r call, opts []Option) (wire.RoleRemoval, error) {
	now, err := ask[wire.RoleRemoval](ctx, c, r, opts)
	if errors.Is(err, errRemovedBefore) {
		return wire.RoleRemoval{RoleID: of, Status: string(role.Removed)}, nil
	}
	return now, err
}
