package backups

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func backupsRestore(a *app.App) *cobra.Command {
	var wait app.Waiting
	var shrink bool
	cmd := &cobra.Command{
		Use: "restore DATABASE BACKUP", Short: "Replace what a single-login database holds by a backup of it",
		Args: cobra.ExactArgs(2),
		Long: `Replace what a database holds by a backup of it. What was written since the backup is lost, and all connections are
closed. The backup is restored beside the database first, and compared, so that a restore that fails changes nothing.

A restore that would remove more than nine tenths of the rows or tables fails, and changes nothing either, unless
--confirm-shrink says that it is meant.

This is for databases with a single login. For those with managed logins, there is the API alone:
POST /api/v1/databases/{id}/managed-restores.`,
		ValidArgsFunction: completeBackup(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := backup.ParseFilename(args[1])
			if err != nil {
				return app.Usage("BACKUP: %w", err)
			}
			var which id.DatabaseID
			err = a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				which = of
				return wantSingleLogin(ctx, c, of)
			})(cmd, args)
			if err != nil {
				return err
			}
			what := "This replaces all that " + args[0] + " holds by the backup of " + file.Time().Format("2006-01-02 15:04:05") +
				" UTC, and closes all its connections. What was written since then is lost."
			if err := a.Ask(args[0], what); err != nil {
				return err
			}
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				begun, err := c.Restores.Restore(ctx, which, file, wire.RestoreBackup{ConfirmDisconnect: true, ConfirmShrink: shrink})
				if err != nil {
					return a.MayHaveBegun(err, args[0])
				}
				return wait.End(ctx, a, c, begun)
			})
		},
	}
	cmd.Flags().BoolVar(&shrink, "confirm-shrink", false, "let it remove more than nine tenths of the rows or tables")
	wait.Add(cmd)
	return a.Confirmed(cmd)
}

var errManagedRestore = errors.New("this database has managed logins, and svc restores only databases with a single login")

// wantSingleLogin refuses a database with managed logins: it has more than that of its owner.
func wantSingleLogin(ctx context.Context, c *apiclient.Client, of id.DatabaseID) error {
	logins, err := c.Logins.List(ctx, of)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(logins, func(l wire.Login) bool { return l.Login != database.OwnerLogin }) {
		return app.Next(errManagedRestore, "restore it through the API: POST /api/v1/databases/%s/managed-restores", of)
	}
	return nil
}
