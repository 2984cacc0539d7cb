package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
)

// Additional roles (spec, "Managed additional roles") depend on the operator's switch.
func (c customRoles) routes() []Route {
	const (
		list    = databasesPath + "/{id}/custom-roles"
		one     = list + "/{roleId}"
		changes = one + "/changes"
		change  = changes + "/{operationId}"
	)
	progress := doneOrPending(wire.RoleChange{},
		"The change is completed.", "The change is pending, and continues in the background.")
	removal := doneOrPending(wire.RoleRemoval{}, "The role is removed.", "The removal is not finished: repeat the request.")
	rows := []Route{
		{
			Name: "listRoles", Summary: "List the additional roles of a database",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Action: account.See, Handle: c.list,
			Query:   []Parameter{{Name: "includeRevoked", Meaning: "if true, revoked roles are listed too", Enum: []string{"true"}}},
			Answers: documented(http.StatusOK, wire.Roles[wire.ListedRole]{}),
		},
		{
			Name: "createRole", Summary: "Create an additional role, or continue its creation",
			Method: http.MethodPost, Path: list, Class: ratelimit.Create, Action: account.Configure,
			Body: JSON[wire.CreateRole](), Idempotency: Required, Handle: c.create,
			Answers: documented(http.StatusOK, wire.Role{}),
			Refusals: []fault.Code{
				fault.ManagedRoleConflict, fault.CustomRoleRequiresV3Clone, fault.ConnectGrantRequired,
				fault.AgentError, fault.ServerBusy,
			},
		},
		{
			Name: "renameRole", Summary: "Change the display name of a role",
			Method: http.MethodPatch, Path: one, Class: ratelimit.Write, Action: account.Configure, Body: JSON[wire.RenameRole](),
			Handle:   c.rename,
			Answers:  documented(http.StatusOK, wire.RoleLabel{}),
			Refusals: []fault.Code{fault.RoleNotFound, fault.ManagedRoleConflict},
		},
		{
			Name: "removeRole", Summary: "Remove a revoked role",
			Method: http.MethodDelete, Path: one, Class: ratelimit.Write, Action: account.Configure, Handle: c.remove,
			Answers: removal,
			Refusals: []fault.Code{
				fault.RoleNotFound, fault.ManagedRoleConflict, fault.RoleDependencies, fault.ServerBusy,
			},
		},
		{
			Name: "revealRole", Summary: "Reveal the password of a role",
			Method: http.MethodPost, Path: one + "/credentials", Class: ratelimit.Reveal, Action: account.Configure, Handle: c.reveal,
			Answers:  documented(http.StatusOK, wire.RevealedRole{}),
			Refusals: []fault.Code{fault.RoleNotFound, fault.ManagedRoleConflict, fault.AgentError, fault.ServerBusy},
		},
		{
			Name: "changeRole", Summary: "Rotate the password of a role, or revoke the role",
			Method: http.MethodPost, Path: changes, Class: ratelimit.Write, Action: account.Configure,
			Body: JSON[wire.ChangeRole](), Idempotency: Required, Handle: c.change,
			Answers:  progress,
			Refusals: []fault.Code{fault.RoleNotFound, fault.ManagedRoleConflict, fault.ServerBusy},
		},
		{
			Name: "getRoleChange", Summary: "Get a change of a role",
			Method: http.MethodGet, Path: change, Class: ratelimit.Read, Action: account.Configure, Handle: c.readChange,
			Answers:  documented(http.StatusOK, wire.RoleChange{}),
			Refusals: []fault.Code{fault.RoleNotFound, fault.OperationNotFound, fault.ManagedRoleConflict},
		},
		{
			Name: "continueRoleChange", Summary: "Continue a pending change of a role",
			Method: http.MethodPost, Path: change, Class: ratelimit.Write, Action: account.Configure, Body: JSON[wire.Disconnect](),
			Handle:   c.replayChange,
			Answers:  progress,
			Refusals: []fault.Code{fault.RoleNotFound, fault.OperationNotFound, fault.ManagedRoleConflict, fault.ServerBusy},
		},
		{
			Name: "deleteRole", Summary: "Revoke a role and remove it",
			Method: http.MethodPost, Path: one + "/delete", Class: ratelimit.Write, Action: account.Configure,
			Body: JSON[wire.DeleteRole](), Handle: c.delete,
			Answers: removal,
			Refusals: []fault.Code{
				fault.RoleNotFound, fault.ManagedRoleConflict, fault.RoleDependencies, fault.ServerBusy,
			},
		},
		{
			Name: "prepareRole", Summary: "Create a reserved role on the server",
			Method: http.MethodPost, Path: one + "/prepare", Class: ratelimit.Write, Action: account.Configure, Handle: c.prepare,
			Answers:  documented(http.StatusAccepted, wire.RoleSetup{}),
			Refusals: []fault.Code{fault.RoleNotFound, fault.ManagedRoleConflict, fault.AgentError, fault.ServerBusy},
		},
		{
			Name: "admitRole", Summary: "Allow a prepared role to log in",
			Method: http.MethodPost, Path: one + "/admit", Class: ratelimit.Write, Action: account.Configure, Handle: c.admit,
			Answers: documented(http.StatusOK, wire.RoleSetup{}),
			Refusals: []fault.Code{
				fault.RoleNotFound, fault.ManagedRoleConflict, fault.ConnectGrantRequired, fault.AgentError, fault.ServerBusy,
			},
		},
	}
	for i := range rows {
		rows[i].Gate = rollout.AdditionalRoles
	}
	return aboutLogins(rows)
}

// The logins that came with the database.
func (m managedRoles) routes() []Route {
	const (
		list = databasesPath + "/{id}/managed-roles"
		one  = list + "/{" + loginParameter + "}"
	)
	return aboutLogins([]Route{
		{
			Name: "listLogins", Summary: "List the logins that were created with a database",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Action: account.See, Handle: m.list,
			Answers: documented(http.StatusOK, wire.Roles[wire.Login]{}),
		},
		{
			Name: "revealLogin", Summary: "Reveal the password of the runtime or readonly login",
			Method: http.MethodPost, Path: one + "/credentials", Class: ratelimit.Reveal, Action: account.Configure, Handle: m.reveal,
			Answers:  documented(http.StatusOK, wire.RevealedLogin{}),
			Refusals: []fault.Code{fault.RoleNotFound, fault.ManagedRoleConflict, fault.AgentError, fault.ServerBusy},
		},
		{
			Name: "rotateLogin", Summary: "Rotate the password of a login; the owner's new password is returned once",
			Method: http.MethodPost, Path: one + "/rotate", Class: ratelimit.Write, Action: account.Configure,
			Body: JSON[wire.Disconnect](), Idempotency: Required, Handle: m.rotate,
			Answers: doneOrPending(wire.LoginRotation{},
				"The rotation is completed.", "The rotation is pending, and continues in the background."),
			Refusals: []fault.Code{fault.RoleNotFound, fault.ManagedRoleConflict, fault.ServerBusy},
		},
	})
}

// aboutLogins completes rows whose answers may not be stored.
func aboutLogins(rows []Route) []Route {
	for i := range rows {
		rows[i].Target, rows[i].NoStore = Database, true
	}
	return rows
}
