package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
)

// roleRoutes are the rows of the table that are about logins: additional roles (spec, "Managed additional roles") and the logins
// that came with the database. None of their answers may be stored.
func roleRoutes(uc *controlplane.ControlPlane) []Route {
	rows := append(customRoleRoutes(customRoles{uc.Roles}), managedRoleRoutes(managedRoles{uc.ManagedLogins})...)
	for i := range rows {
		rows[i].Target, rows[i].NoStore = Database, true
	}
	return rows
}

// customRoleRoutes depend on the operator's switch.
func customRoleRoutes(c customRoles) []Route {
	const (
		list    = keyed + "/databases/{id}/custom-roles"
		one     = list + "/{roleId}"
		changes = one + "/changes"
		change  = changes + "/{operationId}"
	)
	progress := append(documented(http.StatusOK, wire.RoleChange{}), documented(http.StatusAccepted, wire.RoleChange{})...)
	rows := []Route{
		{
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Action: account.See, Handle: c.list,
			Query:   []Parameter{{Name: "includeRevoked", Meaning: "true lists revoked roles too", Enum: []string{"true"}}},
			Summary: "The additional roles of a database", Answers: documented(http.StatusOK, wire.Roles[wire.ListedRole]{}),
		},
		{
			Method: http.MethodPost, Path: list, Class: ratelimit.Create, Action: account.Configure,
			Body: JSON[wire.CreateRole](), Idempotency: Required, Handle: c.create,
			Summary: "Make an additional role, or go on making it", Answers: documented(http.StatusOK, wire.Role{}),
		},
		{
			Method: http.MethodPatch, Path: one, Class: ratelimit.Write, Action: account.Configure, Body: JSON[wire.RenameRole](),
			Handle:  c.rename,
			Summary: "Change the label of a role", Answers: documented(http.StatusOK, wire.RoleLabel{}),
		},
		{
			Method: http.MethodDelete, Path: one, Class: ratelimit.Write, Action: account.Configure, Handle: c.remove,
			Summary: "Remove a revoked role: 202 while its removal is pending",
			Answers: append(documented(http.StatusOK, wire.RoleRemoval{}), documented(http.StatusAccepted, wire.RoleRemoval{})...),
		},
		{
			Method: http.MethodPost, Path: one + "/credentials", Class: ratelimit.Reveal, Action: account.Configure, Handle: c.reveal,
			Summary: "Show the password of a role", Answers: documented(http.StatusOK, wire.RevealedRole{}),
		},
		{
			Method: http.MethodPost, Path: changes, Class: ratelimit.Write, Action: account.Configure,
			Body: JSON[wire.ChangeRole](), Idempotency: Required, Handle: c.change,
			Summary: "Rotate the password of a role, or revoke it: 202 while that is not proven yet", Answers: progress,
		},
		{
			Method: http.MethodGet, Path: change, Class: ratelimit.Read, Action: account.Configure, Handle: c.readChange,
			Summary: "One change of a role", Answers: documented(http.StatusOK, wire.RoleChange{}),
		},
		{
			Method: http.MethodPost, Path: change, Class: ratelimit.Write, Action: account.Configure, Body: JSON[wire.Disconnect](),
			Handle:  c.replayChange,
			Summary: "Go on with a change: 202 while it is pending", Answers: progress,
		},
		{
			Method: http.MethodPost, Path: one + "/delete", Class: ratelimit.Write, Action: account.Configure,
			Body: JSON[wire.DeleteRole](), Handle: c.delete,
			Summary: "Revoke a role and remove it: 202 while there is more to do, then repeat the call",
			Answers: append(documented(http.StatusOK, wire.RoleRemoval{}), documented(http.StatusAccepted, wire.RoleRemoval{})...),
		},
		{
			Method: http.MethodPost, Path: one + "/prepare", Class: ratelimit.Write, Action: account.Configure, Handle: c.prepare,
			Summary: "Make a reserved role on the server", Answers: documented(http.StatusAccepted, wire.RoleSetup{}),
		},
		{
			Method: http.MethodPost, Path: one + "/admit", Class: ratelimit.Write, Action: account.Configure, Handle: c.admit,
			Summary: "Open a prepared role", Answers: documented(http.StatusOK, wire.RoleSetup{}),
		},
	}
	for i := range rows {
		rows[i].Gate = rollout.AdditionalRoles
	}
	return rows
}

func managedRoleRoutes(m managedRoles) []Route {
	const (
		list = keyed + "/databases/{id}/managed-roles"
		one  = list + "/{" + loginParameter + "}"
	)
	return []Route{
		{
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Action: account.See, Handle: m.list,
			Summary: "The logins that came with a database", Answers: documented(http.StatusOK, wire.Roles[wire.Login]{}),
		},
		{
			Method: http.MethodPost, Path: one + "/credentials", Class: ratelimit.Reveal, Action: account.Configure, Handle: m.reveal,
			Summary: "Show the password of the runtime or the readonly login",
			Answers: documented(http.StatusOK, wire.RevealedLogin{}),
		},
		{
			Method: http.MethodPost, Path: one + "/rotate", Class: ratelimit.Write, Action: account.Configure,
			Body: JSON[wire.Disconnect](), Idempotency: Required, Handle: m.rotate,
			Summary: "Change the password of a login: 202 while that is not proven yet; the owner's is told once",
			Answers: append(documented(http.StatusOK, wire.LoginRotation{}), documented(http.StatusAccepted, wire.LoginRotation{})...),
		},
	}
}
