package roles

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// CustomRoles are the additional roles of managed databases.
var CustomRoles = RoleModel{
	Model: role.ManagedRoles, group: []string{"managed"}, prefix: "custom-",
	Calls: func(c *apiclient.Client) apiclient.RoleCalls { return c.Roles },
	remove: func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, one id.RoleID) (wire.RoleRemoval, error) {
		return c.Roles.Delete(ctx, of, one, wire.DeleteRole{Confirm: true})
	},
}

// Managed makes the command "svc managed".
func Managed(a *app.App) *cobra.Command {
	m := CustomRoles
	return app.Group("managed", "Give logins to a database with managed roles, and change their passwords",
		roleList(a, m),
		roleCreate(a, m, `Make an additional role, which can log in at once. All additional roles of a database share a number of
connections.

One whose making was interrupted is gone on with by repeating the command with its idempotency key.`),
		customRename(a, m),
		roleCredentials(a, m),
		roleRotate(a, m),
		roleRevoke(a, m),
		roleShowChange(a, m),
		roleDelete(a, m),
		customPrepare(a, m),
		roleAdmit(a, m, "Let a role log in that was prepared, and whose making was interrupted then."),
		logins(a),
		loginsCredentials(a),
		loginsRotate(a),
	)
}

func customRename(a *app.App, m RoleModel) *cobra.Command {
	return &cobra.Command{
		Use: m.prefix + "rename DATABASE ROLE NAME", Short: "Change the display name of a role; it logs in as before",
		Args: cobra.ExactArgs(3), ValidArgsFunction: m.complete(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := role.ValidateDisplayName(args[2])
			if err != nil {
				return app.Usage("NAME: %w", err)
			}
			return m.onRole(a, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, one id.RoleID) error {
				renamed, err := c.Roles.Rename(ctx, of, one, wire.RenameRole{DisplayName: name})
				return a.Done(renamed, err, "The role %s is called %s.", args[1], renamed.DisplayName)
			})(cmd, args)
		},
	}
}

func customPrepare(a *app.App, m RoleModel) *cobra.Command {
	return &cobra.Command{
		Use: m.prefix + "prepare DATABASE ROLE", Short: "Create a role on the server whose making was interrupted",
		Args: cobra.ExactArgs(2), ValidArgsFunction: m.complete(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.onRole(a, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, one id.RoleID) error {
				prepared, err := c.Roles.Prepare(ctx, of, one)
				if err != nil {
					return m.afterSetup(a, err, app.Again(cmd, args), args)
				}
				m.sayNext(a, prepared.Status, args)
				return a.ShowRecord(prepared, setupFields(prepared)...)
			})(cmd, args)
		},
	}
}
