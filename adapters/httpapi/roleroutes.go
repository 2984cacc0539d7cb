package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
)

// Additional roles (spec, "Managed additional roles") depend on the operator's switch.
func (c customRoles) routes() []serve.Route {
	const path = databasesPath + "/{id}/custom-roles"
	rows := append(c.common(path, "Role", fault.ManagedRoleConflict),
		serve.Route{
			Name: "createRole", Summary: "Create an additional role, or continue its creation",
			Method: http.MethodPost, Path: path, Class: ratelimit.Create, Action: account.Configure,
			Body: serve.JSON[wire.CreateRole](), Idempotency: serve.Required, Work: serve.OK(c.create),
			Refusals: []fault.Code{
				fault.ManagedRoleConflict, fault.CustomRoleRequiresV3Clone, fault.ConnectGrantRequired,
				fault.AgentError, fault.ServerBusy,
			},
		},
		serve.Route{
			Name: "removeRole", Summary: "Remove a revoked role",
			Method: http.MethodDelete, Path: path + "/{roleId}", Class: ratelimit.Write, Action: account.Configure,
			Work:     removal(c.remove),
			Refusals: []fault.Code{fault.RoleNotFound, fault.ManagedRoleConflict, fault.RoleDependencies, fault.ServerBusy},
		},
		serve.Route{
			Name: "prepareRole", Summary: "Create a reserved role on the server",
			Method: http.MethodPost, Path: path + "/{roleId}/prepare", Class: ratelimit.Write, Action: account.Configure,
			Repeatable: true, Work: serve.Accepted(c.prepare),
			Refusals: []fault.Code{fault.RoleNotFound, fault.ManagedRoleConflict, fault.AgentError, fault.ServerBusy},
		},
		serve.Route{
			Name: "renameRole", Summary: "Change the display name of a role",
			Method: http.MethodPatch, Path: path + "/{roleId}", Class: ratelimit.Write, Action: account.Configure,
			Body: serve.JSON[wire.RenameRole](), Work: serve.OK(c.rename),
			Refusals: []fault.Code{fault.RoleNotFound, fault.ManagedRoleConflict},
		},
		serve.Route{
			Name: "deleteRole", Summary: "Revoke a role and remove it",
			Method: http.MethodPost, Path: path + "/{roleId}/delete", Class: ratelimit.Write, Action: account.Configure,
			Body: serve.JSON[wire.DeleteRole](), Repeatable: true, Work: removal(c.delete),
			Refusals: []fault.Code{
				fault.RoleNotFound, fault.ManagedRoleConflict, fault.RoleDependencies, fault.ServerBusy,
			},
		},
	)
	return aboutLogins(rollout.AdditionalRoles, rows)
}

// Those of databases with a single login (spec, "Additional roles for existing databases") depend on an activation.
func (l legacyRoles) routes() []serve.Route {
	const path = databasesPath + "/{id}/legacy-roles"
	rows := append(l.common(path, "LegacyRole", fault.LegacyRoleConflict),
		serve.Route{
			Name: "createLegacyRole", Summary: "Reserve an additional role",
			Method: http.MethodPost, Path: path, Class: ratelimit.Create, Action: account.Configure,
			Body: serve.JSON[wire.CreateRole](), Idempotency: serve.Required, Work: serve.OK(l.create),
			Refusals: []fault.Code{fault.LegacyRoleConflict, fault.ServerBusy},
		},
		serve.Route{
			Name: "removeLegacyRole", Summary: "Remove a role; a ready one is revoked first",
			Method: http.MethodDelete, Path: path + "/{roleId}", Class: ratelimit.Write, Action: account.Configure,
			Work:     removal(l.delete),
			Refusals: []fault.Code{fault.RoleNotFound, fault.LegacyRoleConflict, fault.RoleDependencies, fault.ServerBusy},
		},
		serve.Route{
			Name: "prepareLegacyRole", Summary: "Create a reserved role on the server",
			Method: http.MethodPost, Path: path + "/{roleId}/prepare", Class: ratelimit.Write, Action: account.Configure,
			Repeatable: true, Work: serve.Accepted(l.prepare),
			Refusals: []fault.Code{fault.RoleNotFound, fault.LegacyRoleConflict, fault.AgentError, fault.ServerBusy},
		},
		serve.Route{
			Name: "optInLegacyRoles", Summary: "Opt in for additional roles, or go on with the opt-in",
			Method: http.MethodPost, Path: path + "/opt-in", Class: ratelimit.Create, Action: account.Configure,
			Repeatable: true,
			Work: serve.DoneOrPending(
				"The overlay is active.", "The overlay is reserved: repeat the request.", l.optIn),
			Refusals: []fault.Code{fault.LegacyRoleConflict, fault.AgentError, fault.ServerBusy},
		},
		serve.Route{
			Name: "reconcileLegacyRole", Summary: "Find out what has become of the last step of a role",
			Method: http.MethodPost, Path: path + "/{roleId}/reconcile", Class: ratelimit.Write, Action: account.Configure,
			Repeatable: true, Work: serve.OK(l.reconcile),
			Refusals: []fault.Code{
				fault.RoleNotFound, fault.LegacyRoleConflict, fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
	)
	return aboutLogins(rollout.LegacyRoles, rows)
}

func removal(do func(*serve.Request) (wire.RoleRemoval, bool, error)) serve.Work {
	return serve.DoneOrPending("The role is removed.", "The removal is not finished: repeat the request.", do)
}

func changing(do func(*serve.Request) (wire.RoleChange, bool, error)) serve.Work {
	return serve.DoneOrPending("The change is completed.", "The change is pending, and continues in the background.", do)
}

// common are the routes that both kinds of additional roles have. The noun completes their names, and conflict is the code of
// what a state forbids.
func (c customRoles) common(list, noun string, conflict fault.Code) []serve.Route {
	one := list + "/{roleId}"
	changes := one + "/changes"
	change := changes + "/{operationId}"
	return []serve.Route{
		{
			Name: "list" + noun + "s", Summary: "List the additional roles of a database",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Action: account.See, Work: serve.OK(c.list),
			Query: []serve.Parameter{{Name: "includeRevoked", Meaning: "if true, revoked roles are listed too", Enum: []string{"true"}}},
		},
		{
			Name: "reveal" + noun, Summary: "Reveal the password of a role",
			Method: http.MethodPost, Path: one + "/credentials", Class: ratelimit.Reveal, Action: account.Configure,
			Repeatable: true, Work: serve.OK(c.reveal),
			Refusals: []fault.Code{fault.RoleNotFound, conflict, fault.AgentError, fault.ServerBusy},
		},
		{
			Name: "change" + noun, Summary: "Rotate the password of a role, or revoke the role",
			Method: http.MethodPost, Path: changes, Class: ratelimit.Write, Action: account.Configure,
			Body: serve.JSON[wire.ChangeRole](), Idempotency: serve.Required, Work: changing(c.change),
			Refusals: []fault.Code{fault.RoleNotFound, conflict, fault.ServerBusy},
		},
		{
			Name: "get" + noun + "Change", Summary: "Get a change of a role",
			Method: http.MethodGet, Path: change, Class: ratelimit.Read, Action: account.Configure, Work: serve.OK(c.readChange),
			Refusals: []fault.Code{fault.RoleNotFound, fault.OperationNotFound, conflict},
		},
		{
			Name: "continue" + noun + "Change", Summary: "Continue a pending change of a role",
			Method: http.MethodPost, Path: change, Class: ratelimit.Write, Action: account.Configure, Body: serve.JSON[wire.Disconnect](),
			Repeatable: true, Work: changing(c.replayChange),
			Refusals: []fault.Code{fault.RoleNotFound, fault.OperationNotFound, conflict, fault.ServerBusy},
		},
		{
			Name: "admit" + noun, Summary: "Allow a prepared role to log in",
			Method: http.MethodPost, Path: one + "/admit", Class: ratelimit.Write, Action: account.Configure,
			Repeatable: true, Work: serve.OK(c.admit),
			Refusals: []fault.Code{
				fault.RoleNotFound, conflict, fault.ConnectGrantRequired, fault.AgentError, fault.ServerBusy,
			},
		},
	}
}

// The logins that came with the database.
func (m managedRoles) routes() []serve.Route {
	const (
		list = databasesPath + "/{id}/managed-roles"
		one  = list + "/{" + serve.LoginParameter + "}"
	)
	return aboutLogins("", []serve.Route{
		{
			Name: "listLogins", Summary: "List the logins that were created with a database",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Action: account.See, Work: serve.OK(m.list),
		},
		{
			Name: "revealLogin", Summary: "Reveal the password of the runtime or readonly login",
			Method: http.MethodPost, Path: one + "/credentials", Class: ratelimit.Reveal, Action: account.Configure,
			Repeatable: true, Work: serve.OK(m.reveal),
			Refusals: []fault.Code{fault.RoleNotFound, fault.ManagedRoleConflict, fault.AgentError, fault.ServerBusy},
		},
		{
			Name: "rotateLogin", Summary: "Rotate the password of a login; the owner's new password is returned once",
			Method: http.MethodPost, Path: one + "/rotate", Class: ratelimit.Write, Action: account.Configure,
			Body: serve.JSON[wire.Disconnect](), Idempotency: serve.Required,
			Work: serve.DoneOrPending(
				"The rotation is completed.", "The rotation is pending, and continues in the background.", m.rotate),
			Refusals: []fault.Code{fault.RoleNotFound, fault.ManagedRoleConflict, fault.ServerBusy},
		},
	})
}

// aboutLogins completes rows whose answers may not be stored. The gate is empty where there is none.
func aboutLogins(gate rollout.Gate, rows []serve.Route) []serve.Route {
	for i := range rows {
		rows[i].Target, rows[i].Gate, rows[i].NoStore = Database, gate, true
	}
	return rows
}
