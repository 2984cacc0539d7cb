package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

func operations(a *app) *cobra.Command {
	return group("operations", "See, await and cancel what takes longer than a call",
		operationsList(a),
		operationsGet(a),
		operationsWait(a),
		operationsCancel(a),
	)
}

func operationsList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list DATABASE", Short: "List the operations of a database, newest first", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.completeDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				of, err := a.databaseNamed(ctx, args[0])
				if err != nil {
					return err
				}
				list, err := collected(c.Operations.All(ctx, of))
				if err != nil {
					return err
				}
				return showList(a, list, "No operations.", func(o wire.Operation) []field {
					return []field{
						{"ID", o.ID}, {"TYPE", o.Type}, {"STATUS", o.Status}, {"CREATED", o.CreatedAt}, {"TOOK", took(o)}, {"ERROR", failure(o)},
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

func operationsGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "get OPERATION", Short: "Show an operation", Args: cobra.ExactArgs(1),
		RunE: onOperation(a, func(ctx context.Context, c *apiclient.Client, of id.OperationID) error {
			o, err := c.Operations.Get(ctx, of)
			if err != nil {
				return err
			}
			return a.showOperation(o)
		}),
	}
}

func operationsWait(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "wait OPERATION", Short: "Wait until an operation has ended", Args: cobra.ExactArgs(1),
		Long: "Wait until an operation has ended, and show its progress. The exit status is 0 if it has succeeded, and 1 if not.",
		RunE: onOperation(a, func(ctx context.Context, c *apiclient.Client, of id.OperationID) error {
			o, err := c.Operations.Get(ctx, of)
			if err != nil {
				return err
			}
			o, err = a.follow(ctx, c, o)
			if err != nil {
				return err
			}
			return a.showEnded(o)
		}),
	}
}

func operationsCancel(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "cancel OPERATION", Short: "Cancel an operation that has changed nothing yet", Args: cobra.ExactArgs(1),
		RunE: onOperation(a, func(ctx context.Context, c *apiclient.Client, of id.OperationID) error {
			canceled, err := c.Operations.Cancel(ctx, of)
			if err != nil {
				return err
			}
			return a.say(canceled, "%s", canceled.Message)
		}),
	}
}

// onOperation runs a command whose argument is an operation's ID.
func onOperation(
	a *app, do func(context.Context, *apiclient.Client, id.OperationID) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		of, err := wantID[id.OperationID](args[0], "OPERATION")
		if err != nil {
			return err
		}
		return a.withAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error { return do(ctx, c, of) })
	}
}
