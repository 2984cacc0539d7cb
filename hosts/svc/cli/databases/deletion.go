package databases

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func databasesDelete(a *app.App) *cobra.Command {
	var wait app.Waiting
	cmd := &cobra.Command{
		Use: "delete DATABASE", Short: "Back a database up and delete it", Args: cobra.ExactArgs(1),
		Long: `Back a database up and delete it.

"svc databases deleted" shows until when "svc databases recover" brings it back.`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "This closes all connections of " + args[0] + ", backs it up and deletes it."
			if err := a.Ask(args[0], what); err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				begun, err := c.Databases.Delete(ctx, of)
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				return wait.End(ctx, a, c, begun)
			})(cmd, args)
		},
	}
	wait.Add(cmd)
	return a.Confirmed(cmd)
}

func databasesDeleted(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "deleted", Short: "List the deleted databases that are not purged yet", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				return app.ShowAll(a, c.Databases.ListDeleted().All(ctx), "No deleted databases.", func(d wire.DeletedDatabase) []app.Field {
					return []app.Field{
						{"NAME", d.Name}, {"STATUS", d.RecoveryStatus}, {"DELETED", d.DeletedAt}, {"PURGED AFTER", d.PurgeAfter},
						{"BACKUP", deletionBackup(d)}, {"ID", d.ID},
					}
				})
			})
		},
	}
}

func deletionBackup(d wire.DeletedDatabase) any {
	if d.DeletionBackup == nil {
		return nil
	}
	return terminal.Size(d.DeletionBackup.SizeBytes)
}

func databasesRecover(a *app.App) *cobra.Command {
	var wait app.Waiting
	cmd := &cobra.Command{
		Use: "recover DATABASE", Short: "Bring a deleted database back", Args: cobra.ExactArgs(1),
		ValidArgsFunction: CompleteDeleted(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				of, err := DeletedNamed(ctx, a, c, args[0])
				if err != nil {
					return err
				}
				begun, err := c.Databases.Recover(ctx, of)
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				return wait.End(ctx, a, c, begun)
			})
		},
	}
	wait.Add(cmd)
	return cmd
}

// DeletedNamed finds a deleted database by its name or its ID.
func DeletedNamed(ctx context.Context, a *app.App, c *apiclient.Client, name string) (id.DatabaseID, error) {
	if of, is := app.IDOf[id.DatabaseID](name); is {
		return of, nil
	}
	nameOf := func(d wire.DeletedDatabase) string { return d.Name }
	found, err := app.Named(c.Databases.ListDeleted().All(ctx), name, "deleted database", nameOf)
	return found.ID, err
}

// CompleteDeleted offers the names of deleted databases.
func CompleteDeleted(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.Names(cmd, func(ctx context.Context, c *apiclient.Client) (names []string, err error) {
			for d, err := range c.Databases.ListDeleted().All(ctx) {
				if err != nil {
					return nil, err
				}
				names = append(names, d.Name)
			}
			return names, nil
		})
	}
}
