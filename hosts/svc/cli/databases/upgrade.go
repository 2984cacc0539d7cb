package databases

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func databasesConfirmUpgrade(a *app.App) *cobra.Command {
	return a.Confirmed(&cobra.Command{
		Use: "confirm-upgrade DATABASE", Short: "Confirm an upgrade of PostgreSQL: there is no way back then",
		Long: `Confirm that a database works with the PostgreSQL that it was upgraded to. Until then the people who run the service can
take it back, with all that was written since, to the version before it, which "svc databases get" shows. Where no way back is
open, nothing changes.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "This ends the way back of " + args[0] + " to the PostgreSQL that it had before its upgrade."
			if err := a.Ask(args[0], what); err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				confirmed, err := c.Databases.ConfirmUpgrade(ctx, of)
				return a.Done(confirmed, err, "%s stays with PostgreSQL %d.", args[0], confirmed.PostgresVersion)
			})(cmd, args)
		},
	})
}
