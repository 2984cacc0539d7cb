package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

func databasesDelete(a *app) *cobra.Command {
	var confirm confirmation
	var wait waiting
	cmd := &cobra.Command{
		Use: "delete DATABASE", Short: "Back a database up and delete it", Args: cobra.ExactArgs(1),
		Long: `Back a database up and delete it.

"svc databases deleted" shows until when "svc databases recover" brings it back.`,
		ValidArgsFunction: a.completeDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "This closes all connections of " + args[0] + ", backs it up and deletes it."
			if err := confirm.ask(a, args[0], what); err != nil {
				return err
			}
			return a.onDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				begun, err := c.Databases.Delete(ctx, of)
				if err != nil {
					return a.mayBeDone(err, again(cmd, args))
				}
				return wait.end(ctx, a, c, begun)
			})(cmd, args)
		},
	}
	confirm.add(cmd)
	wait.add(cmd)
	return cmd
}

func databasesDeleted(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "deleted", Short: "List the deleted databases that are not purged yet", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				list, err := collected(c.Databases.AllDeleted(ctx))
				if err != nil {
					return err
				}
				return showList(a, list, "No deleted databases.", func(d wire.DeletedDatabase) []field {
					return []field{
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

func databasesRecover(a *app) *cobra.Command {
	var wait waiting
	cmd := &cobra.Command{
		Use: "recover DATABASE", Short: "Bring a deleted database back", Args: cobra.ExactArgs(1),
		ValidArgsFunction: completeDeleted(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				of, err := deletedNamed(ctx, a, c, args[0])
				if err != nil {
					return err
				}
				begun, err := c.Databases.Recover(ctx, of)
				if err != nil {
					return a.mayBeDone(err, again(cmd, args))
				}
				return wait.end(ctx, a, c, begun)
			})
		},
	}
	wait.add(cmd)
	return cmd
}

// deletedNamed finds a deleted database by its name or its ID.
func deletedNamed(ctx context.Context, a *app, c *apiclient.Client, name string) (id.DatabaseID, error) {
	if of, is := idOf[id.DatabaseID](name); is {
		return of, nil
	}
	found, err := named(c.Databases.AllDeleted(ctx), name, "deleted database", func(d wire.DeletedDatabase) string { return d.Name })
	return found.ID, err
}

func completeDeleted(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.names(cmd, func(ctx context.Context, c *apiclient.Client) (names []string, err error) {
			for d, err := range c.Databases.AllDeleted(ctx) {
				if err != nil {
					return nil, err
				}
				names = append(names, d.Name)
			}
			return names, nil
		})
	}
}
