package databases

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func databasesRewind(a *app.App) *cobra.Command {
	var at string
	var shrink bool
	var key app.KeyFlag
	cmd := &cobra.Command{
		Use: "rewind DATABASE", Short: "Put a database back to what it held at a moment", Args: cobra.ExactArgs(1),
		Long: `Put a database back to what it held at a moment. What was written since is out of the database, and all connections are
closed. The database is had back beside itself first, and compared, so that a rewind that fails or is interrupted changes
nothing; "svc databases clone --at" only looks. What it held before is in its window still.

A rewind that would remove more than nine tenths of the rows or tables fails, and changes nothing either, unless
--confirm-shrink says that it is meant.

This is a managed restore: for databases with managed logins, with a full-account key. It goes on as long as this command
runs, which can be repeated with the same key.`,
		Example:           `  svc databases rewind shop --at '2026-03-01 12:30:00+01'`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			moment, err := app.Moment("--at", at)
			if err != nil {
				return err
			}
			what := "This puts " + args[0] + " back to what it held at " + moment.Format("2006-01-02 15:04:05.999999") +
				" UTC, and closes all its connections."
			if err := a.Ask(args[0], what); err != nil {
				return err
			}
			opt, err := key.Use(a)
			if err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				begun, err := c.Restores.Reserve(ctx, of, wire.ReserveRestore{
					PointInTime: new(recovery.Text(*moment)), ConfirmShrink: shrink,
				}, opt)
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				ended, err := advance(ctx, a, c, begun.Operation)
				if err != nil {
					return app.Next(err, "the restore waits an hour for that; go on with: %s", app.Again(cmd, args))
				}
				return a.ShowEnded(ended)
			})(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&at, "at", "", "what the database held then, as '2026-03-01 12:30:00+01'")
	f.BoolVar(&shrink, "confirm-shrink", false, "let it remove more than nine tenths of the rows or tables")
	key.Add(cmd)
	return a.Confirmed(cmd)
}

// advance has a managed restore go on until it has ended.
func advance(ctx context.Context, a *app.App, c *apiclient.Client, o wire.Operation) (wire.Operation, error) {
	ended, err := a.Drive(ctx, o, func(ctx context.Context) (wire.Operation, error) { return c.Restores.Advance(ctx, o.ID) })
	var refused *apiclient.Error
	if errors.As(err, &refused) && refused.Code == fault.RestoreOperationTerminal { // it has failed, or was canceled
		return c.Operations.Get(ctx, o.ID)
	}
	return ended, err
}
