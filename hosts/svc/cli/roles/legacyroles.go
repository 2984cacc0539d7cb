package roles

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// SingleLoginRoles are the additional roles of databases with a single login.
var SingleLoginRoles = RoleModel{
	Model: role.LegacyRoles, group: []string{"legacy-roles"},
	Calls: func(c *apiclient.Client) apiclient.RoleCalls { return c.LegacyRoles },
	remove: func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, one id.RoleID) (wire.RoleRemoval, error) {
		return c.LegacyRoles.Remove(ctx, of, one)
	},
}

// Legacy makes the command "svc legacy-roles".
func Legacy(a *app.App) *cobra.Command {
	m := SingleLoginRoles
	return app.Group("legacy-roles", "Give further logins to a database with a single one",
		legacyOptIn(a),
		roleCreate(a, m, `Reserve an additional role. Then it is prepared, the owner of the database lets it connect, and it is
admitted.

A database has at most three such roles, of at most 20 connections each.`),
		legacyPrepare(a, m),
		roleAdmit(a, m, "Let a role log in that was prepared, and that the owner of the database lets connect."),
		legacyReconcile(a, m),
		roleList(a, m),
		roleCredentials(a, m),
		roleRotate(a, m),
		roleRevoke(a, m),
		roleShowChange(a, m),
		roleDelete(a, m),
	)
}

func legacyOptIn(a *app.App) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use: "opt-in DATABASE", Short: "Make a database ready for additional roles", Args: cobra.ExactArgs(1),
		Long: `Make a database ready for additional roles. An operator has to have activated it.

This changes no grant of yours, no password and no connection. It waits for transactions that were writing when it began: while
one of them is open the status stays reserved, and the command has to be repeated, which --wait does.`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				optIn := func(ctx context.Context) (wire.Overlay, error) { return c.LegacyRoles.OptIn(ctx, of) }
				overlay, err := optIn(ctx)
				if err == nil && wait {
					overlay, err = app.UntilDone(ctx, overlay, stands, optIn)
				}
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				if !stands(overlay) && !a.WantsJSON() {
					a.Note("the opt-in is not done, as when a transaction is open; go on with: %s --wait", app.Again(cmd, args))
				}
				return a.ShowRecord(overlay, app.Field{"Opt-in", overlay.OverlayID}, app.Field{"Status", overlay.Status})
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "repeat it until it is done")
	return cmd
}

func stands(o wire.Overlay) bool { return o.Status == database.OverlayActive }

func legacyPrepare(a *app.App, m RoleModel) *cobra.Command {
	return &cobra.Command{
		Use: "prepare DATABASE ROLE", Short: "Create a reserved role on the server", Args: cobra.ExactArgs(2),
		Long: `Create a reserved role on the server. It cannot log in yet: the owner of the database runs the statement that is
printed, and then the role is admitted.`,
		ValidArgsFunction: m.complete(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.onRole(a, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, one id.RoleID) error {
				prepared, err := c.LegacyRoles.Prepare(ctx, of, one)
				if err != nil {
					return m.afterSetup(a, err, app.Again(cmd, args), args)
				}
				if !a.WantsJSON() {
					a.Note("run the statement as the database's owner, then: %s", m.line(a, "admit", args...))
				}
				return a.ShowRecord(prepared, append(setupFields(prepared.RoleSetup), app.Field{"Statement", prepared.GrantSQL})...)
			})(cmd, args)
		},
	}
}

func legacyReconcile(a *app.App, m RoleModel) *cobra.Command {
	return &cobra.Command{
		Use: "reconcile DATABASE ROLE", Short: "Find out what has become of the last step of a role", Args: cobra.ExactArgs(2),
		Long: `Find out what has become of the last step of a role whose answer was lost or uncertain. This takes no step: one that
was not done is to be asked for again.`,
		ValidArgsFunction: m.complete(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.onRole(a, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, one id.RoleID) error {
				found, err := c.LegacyRoles.Reconcile(ctx, of, one)
				if err != nil {
					return err
				}
				m.sayNext(a, found.Status, args)
				return a.ShowRecord(found, append(roleFields(found.Role), app.Field{"Pending change", found.OperationID})...)
			})(cmd, args)
		},
	}
}
