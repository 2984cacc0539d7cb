// Package operations has the commands of svc about asynchronous work.
package operations

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// Command makes the command "svc operations".
func Command(a *app.App) *cobra.Command {
	return app.Group("operations", "See, await and cancel what takes longer than a call",
		operationsList(a),
		operationsGet(a),
		operationsWait(a),
		operationsCancel(a),
	)
}

func operationsList(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "list DATABASE", Short: "List the operations of a database, newest first", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				of, err := a.DatabaseNamed(ctx, args[0])
				if err != nil {
					return err
				}
				return app.ShowAll(a, c.Operations.List(of).All(ctx), "No operations.", func(o wire.Operation) []app.Field {
					return []app.Field{
						{"ID", o.ID}, {"TYPE", o.Type}, {"STATUS", o.Status}, {"CREATED", o.CreatedAt}, {"TOOK", app.Took(o)},
						{"ERROR", failure(o)},
					}
				})
			})
		},
	}
}

func failure(o wire.Operation) any {
	if o.Error == nil {
		return nil
	}
	return string(o.Error.Code)
}

func operationsGet(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "get OPERATION", Short: "Show an operation", Args: cobra.ExactArgs(1),
		RunE: onOperation(a, func(ctx context.Context, c *apiclient.Client, of id.OperationID) error {
			o, err := c.Operations.Get(ctx, of)
			if err != nil {
				return err
			}
			return a.ShowOperation(o)
		}),
	}
}

func operationsWait(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "wait OPERATION", Short: "Wait until an operation has ended", Args: cobra.ExactArgs(1),
		Long: "Wait until an operation has ended, and show its progress. The exit status is 0 if it has succeeded, and 1 if not.",
		RunE: onOperation(a, func(ctx context.Context, c *apiclient.Client, of id.OperationID) error {
			o, err := c.Operations.Get(ctx, of)
			if err != nil {
				return err
			}
			o, err = a.Follow(ctx, c, o)
			if err != nil {
				return err
			}
			return a.ShowEnded(o)
		}),
	}
}

func operationsCancel(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "cancel OPERATION", Short: "Cancel an operation that has changed nothing yet", Args: cobra.ExactArgs(1),
		RunE: onOperation(a, func(ctx context.Context, c *apiclient.Client, of id.OperationID) error {
			canceled, err := c.Operations.Cancel(ctx, of)
			return a.Done(canceled, err, "%s", canceled.Message)
		}),
	}
}

// onOperation runs a command whose argument is an operation's ID.
func onOperation(
	a *app.App, do func(context.Context, *apiclient.Client, id.OperationID) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		of, err := app.WantID[id.OperationID](args[0], "OPERATION")
		if err != nil {
			return err
		}
		return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error { return do(ctx, c, of) })
	}
}
