package driver

import (
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// Roles implements spec.RoleAPI.
func (c client) Roles(of string, revoked bool) ([]spec.Role, error) {
	list := c.api.Roles.List
	if revoked {
		list = c.api.Roles.ListAll
	}
	return shown[[]spec.Role](list(ctx, id.DatabaseID(of)))
}

// CreateRole implements spec.RoleAPI.
func (c client) CreateRole(of string, n spec.NewRole) (spec.Role, error) {
	return shown[spec.Role](c.api.Roles.Create(ctx, id.DatabaseID(of), wire.CreateRole{
		DisplayName: n.DisplayName, AccessProfile: role.AccessProfile(n.AccessProfile), ConnectionLimit: n.ConnectionLimit,
	}, apiclient.IdempotencyKey(n.IdempotencyKey)))
}

// PrepareRole implements spec.RoleAPI.
func (c client) PrepareRole(of, one string) (spec.Role, error) {
	return shown[spec.Role](c.api.Roles.Prepare(ctx, id.DatabaseID(of), id.RoleID(one)))
}

// AdmitRole implements spec.RoleAPI.
func (c client) AdmitRole(of, one string) (spec.Role, error) {
	return shown[spec.Role](c.api.Roles.Admit(ctx, id.DatabaseID(of), id.RoleID(one)))
}

// RenameRole implements spec.RoleAPI.
func (c client) RenameRole(of, one, name string) (spec.Renamed, error) {
	return shown[spec.Renamed](c.api.Roles.Rename(ctx, id.DatabaseID(of), id.RoleID(one), wire.RenameRole{DisplayName: name}))
}

// RevealRole implements spec.RoleAPI.
func (c client) RevealRole(of, one string) (spec.Credential, error) {
	r, err := shown[spec.Credential](c.api.Roles.Reveal(ctx, id.DatabaseID(of), id.RoleID(one)))
	c.remember(r.Password)
	return r, err
}

// DeleteRole implements spec.RoleAPI.
func (c client) DeleteRole(of, one string) (spec.Removal, error) {
	return shown[spec.Removal](c.api.Roles.Delete(ctx, id.DatabaseID(of), id.RoleID(one), wire.DeleteRole{Confirm: true}))
}

// RemoveRole implements spec.RoleAPI.
func (c client) RemoveRole(of, one string) (spec.Removal, error) {
	return shown[spec.Removal](c.api.Roles.Remove(ctx, id.DatabaseID(of), id.RoleID(one)))
}

var disconnect = wire.Disconnect{ConfirmDisconnect: true}

// ChangeRole implements spec.RoleChangeAPI.
func (c client) ChangeRole(of, one, kind, key string) (spec.RoleChange, error) {
	body := wire.ChangeRole{Kind: role.Kind(kind), ConfirmDisconnect: true}
	return shown[spec.RoleChange](c.api.Roles.Change(ctx, id.DatabaseID(of), id.RoleID(one), body, apiclient.IdempotencyKey(key)))
}

// RoleChange implements spec.RoleChangeAPI.
func (c client) RoleChange(of, one, change string) (spec.RoleChange, error) {
	return shown[spec.RoleChange](c.api.Roles.GetChange(ctx, id.DatabaseID(of), id.RoleID(one), id.OperationID(change)))
}

// ReplayChange implements spec.RoleChangeAPI.
func (c client) ReplayChange(of, one, change string) (spec.RoleChange, error) {
	again, err := c.api.Roles.ContinueChange(ctx, id.DatabaseID(of), id.RoleID(one), id.OperationID(change), disconnect)
	return shown[spec.RoleChange](again, err)
}

// ManagedLogins implements spec.LoginAPI.
func (c client) ManagedLogins(of string) ([]spec.ManagedLogin, error) {
	return shown[[]spec.ManagedLogin](c.api.Logins.List(ctx, id.DatabaseID(of)))
}

// RevealLogin implements spec.LoginAPI.
func (c client) RevealLogin(of, login string) (spec.LoginCredential, error) {
	r, err := shown[spec.LoginCredential](c.api.Logins.Reveal(ctx, id.DatabaseID(of), database.Login(login)))
	c.remember(r.Password)
	return r, err
}

// RotateLogin implements spec.LoginAPI.
func (c client) RotateLogin(of, login, key string) (spec.LoginRotation, error) {
	r, err := shown[spec.LoginRotation](c.api.Logins.Rotate(
		ctx, id.DatabaseID(of), database.Login(login), disconnect, apiclient.IdempotencyKey(key)))
	c.remember(r.Password)
	return r, err
}
