package driver

import (
	"context"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
)

// withRoles finds a database whose additional roles the operator lets customers manage, and hands it to the use case.
func withRoles[T any](
	d direct, c ratelimit.Class, db string, use func(context.Context, controlplane.Reached) (T, error),
) (T, error) {
	return reach(d, c, db, account.See, use, rollout.AdditionalRoles)
}

// Roles implements spec.RoleAPI.
func (d direct) Roles(db string, revoked bool) ([]spec.Role, error) {
	return withRoles(d, ratelimit.Read, db, func(ctx context.Context, r controlplane.Reached) ([]spec.Role, error) {
		states, err := d.cp.Roles.List(ctx, r, revoked)
		return shown(states, showListedRole), err
	})
}

// CreateRole implements spec.RoleAPI.
func (d direct) CreateRole(db string, n spec.NewRole) (spec.Role, error) {
	return withRoles(d, ratelimit.Create, db, func(ctx context.Context, r controlplane.Reached) (spec.Role, error) {
		made, err := d.cp.Roles.Create(ctx, r, role.Request{
			DisplayName: n.DisplayName, AccessProfile: role.AccessProfile(n.AccessProfile), ConnectionLimit: n.ConnectionLimit,
			Key: idempotency.Key(n.IdempotencyKey),
		})
		return showRole(made), err
	})
}

// PrepareRole implements spec.RoleAPI.
func (d direct) PrepareRole(db, of string) (spec.Role, error) {
	return withRoles(d, ratelimit.Write, db, func(ctx context.Context, r controlplane.Reached) (spec.Role, error) {
		prepared, err := d.cp.Roles.Prepare(ctx, r, id.RoleID(of))
		return showRole(prepared), err
	})
}

// AdmitRole implements spec.RoleAPI.
func (d direct) AdmitRole(db, of string) (spec.Role, error) {
	return withRoles(d, ratelimit.Write, db, func(ctx context.Context, r controlplane.Reached) (spec.Role, error) {
		admitted, err := d.cp.Roles.Admit(ctx, r, id.RoleID(of))
		return showRole(admitted), err
	})
}

// RenameRole implements spec.RoleAPI.
func (d direct) RenameRole(db, of, name string) (spec.Renamed, error) {
	return withRoles(d, ratelimit.Write, db, func(ctx context.Context, r controlplane.Reached) (spec.Renamed, error) {
		renamed, err := d.cp.Roles.Rename(ctx, r, id.RoleID(of), name)
		return spec.Renamed{RoleID: string(renamed.ID), DisplayName: renamed.DisplayName}, err
	})
}

// RevealRole implements spec.RoleAPI.
func (d direct) RevealRole(db, of string) (spec.Credential, error) {
	return withRoles(d, ratelimit.Reveal, db, func(ctx context.Context, r controlplane.Reached) (spec.Credential, error) {
		revealed, err := d.cp.Roles.Reveal(ctx, r, id.RoleID(of))
		return spec.Credential{Role: showRole(revealed.RoleState), Way: showWay(r.Record(), revealed.Password)}, err
	})
}

// DeleteRole implements spec.RoleAPI.
func (d direct) DeleteRole(db, of string) (spec.Removal, error) {
	return withRoles(d, ratelimit.Write, db, func(ctx context.Context, r controlplane.Reached) (spec.Removal, error) {
		removal, err := d.cp.Roles.Delete(ctx, r, id.RoleID(of))
		return showRemoval(removal), err
	})
}

// RemoveRole implements spec.RoleAPI. There is but one phase, which needs no name.
func (d direct) RemoveRole(db, of string) (spec.Removal, error) {
	return withRoles(d, ratelimit.Write, db, func(ctx context.Context, r controlplane.Reached) (spec.Removal, error) {
		removal, err := d.cp.Roles.Remove(ctx, r, id.RoleID(of))
		removal.Phase = ""
		return showRemoval(removal), err
	})
}

// ChangeRole implements spec.RoleChangeAPI.
func (d direct) ChangeRole(db, of, kind, key string) (spec.RoleChange, error) {
	return withRoles(d, ratelimit.Write, db, func(ctx context.Context, r controlplane.Reached) (spec.RoleChange, error) {
		change, err := d.cp.Roles.Change(ctx, r, id.RoleID(of), role.Kind(kind), idempotency.Key(key))
		return showChange(change), err
	})
}

// RoleChange implements spec.RoleChangeAPI.
func (d direct) RoleChange(db, of, change string) (spec.RoleChange, error) {
	return withRoles(d, ratelimit.Read, db, func(ctx context.Context, r controlplane.Reached) (spec.RoleChange, error) {
		found, err := d.cp.Roles.ReadChange(ctx, r, id.RoleID(of), id.OperationID(change))
		return showChange(found), err
	})
}

// ReplayChange implements spec.RoleChangeAPI.
func (d direct) ReplayChange(db, of, change string) (spec.RoleChange, error) {
	return withRoles(d, ratelimit.Write, db, func(ctx context.Context, r controlplane.Reached) (spec.RoleChange, error) {
		found, err := d.cp.Roles.ReplayChange(ctx, r, id.RoleID(of), id.OperationID(change))
		return showChange(found), err
	})
}

// ManagedLogins implements spec.LoginAPI.
func (d direct) ManagedLogins(db string) ([]spec.ManagedLogin, error) {
	return reach(d, ratelimit.Read, db, account.See, func(ctx context.Context, r controlplane.Reached) ([]spec.ManagedLogin, error) {
		logins, err := d.cp.ManagedLogins.List(ctx, r)
		return shown(logins, showLogin), err
	})
}

// RevealLogin implements spec.LoginAPI.
func (d direct) RevealLogin(db, login string) (spec.LoginCredential, error) {
	return reach(d, ratelimit.Reveal, db, account.Configure,
		func(ctx context.Context, r controlplane.Reached) (spec.LoginCredential, error) {
			revealed, err := d.cp.ManagedLogins.Reveal(ctx, r, database.Login(login))
			return spec.LoginCredential{
				ManagedLogin: showLogin(revealed.ManagedLogin), Way: showWay(r.Record(), revealed.Password),
			}, err
		})
}

// RotateLogin implements spec.LoginAPI.
func (d direct) RotateLogin(db, login, key string) (spec.LoginRotation, error) {
	return reach(d, ratelimit.Write, db, account.Configure,
		func(ctx context.Context, r controlplane.Reached) (spec.LoginRotation, error) {
			rotation, err := d.cp.ManagedLogins.Rotate(ctx, r, database.Login(login), idempotency.Key(key))
			return showRotation(rotation), err
		})
}
