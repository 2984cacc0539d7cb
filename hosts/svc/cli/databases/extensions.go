package databases

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// extensions is a command of its own, and has others below it.
func extensions(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "extensions DATABASE", Short: "Show the extensions that a database has and can have, install and upgrade them",
		Long: `Show the extensions that a database has and can have. The server must have one in the supported version, and a
backup with it must be proven to be restorable, before it can be installed.

A database with the name of one of the commands below is named by its ID here.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteDatabase,
		RunE: a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
			d, err := c.Databases.Get(ctx, of)
			if err != nil {
				return err
			}
			return app.ShowAll(a, app.Sequence(c.Extensions.List(ctx, of)), "No extensions.", func(e wire.Extension) []app.Field {
				return []app.Field{
					{"NAME", e.Name}, {"INSTALLED", e.InstalledVersion}, {"SCHEMA", e.Schema}, {"SERVER HAS", e.DefaultVersion},
					{"SUPPORTED", e.Name.Version(d.PostgresVersion)}, {"TRUSTED", e.Trusted}, {"RESTORABLE", e.RestoreQualified},
				}
			})
		}),
	}
	cmd.AddCommand(
		extensionsChange(a, extension.Install, "Install an extension in the schema public"),
		extensionsChange(a, extension.Upgrade, "Upgrade an extension to the supported version"),
		extensionsStatus(a),
	)
	return cmd
}

func extensionsChange(a *app.App, kind extension.Change, short string) *cobra.Command {
	var key app.KeyFlag
	var wait app.Waiting
	cmd := &cobra.Command{
		Use: string(kind) + " DATABASE EXTENSION", Short: short, Args: cobra.ExactArgs(2),
		ValidArgsFunction: a.CompleteDatabaseAnd(texts(extension.Names)...),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := extension.ParseName(args[1])
			if err != nil {
				return app.Usage("%w", err)
			}
			opt, err := key.Use(a)
			if err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				o, err := c.Extensions.Change(ctx, of, wire.ChangeExtension{Extension: name, Kind: kind}, opt)
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				if !wait.Wait && !o.Status.Final() {
					a.Note("follow it with: %s", a.Onward("svc", "operations", "wait", string(o.ID)))
					return showExtensionOperation(a, o)
				}
				if o.Operation, err = a.Follow(ctx, c, o.Operation); err != nil {
					return err
				}
				if err := showExtensionOperation(a, o); err != nil {
					return err
				}
				if o.Status != operation.Succeeded {
					return app.FailedOperation{Operation: o.Operation}
				}
				return nil
			})(cmd, args)
		},
	}
	key.Add(cmd)
	wait.Add(cmd)
	return cmd
}

// texts are names as a shell completes them.
func texts[T ~string](names []T) (list []string) {
	for _, n := range names {
		list = append(list, string(n))
	}
	return list
}

func extensionsStatus(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "status DATABASE OPERATION", Short: "Show the installation or upgrade of an extension", Args: cobra.ExactArgs(2),
		Long: "Show the installation or upgrade of an extension, after its progress was checked on the database server.",

		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			which, err := app.WantID[id.OperationID](args[1], "OPERATION")
			if err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				o, err := c.Extensions.GetOperation(ctx, of, which)
				if err != nil {
					return err
				}
				return showExtensionOperation(a, o)
			})(cmd, args)
		},
	}
}

// showExtensionOperation shows an operation; its JSON has the key that stands for that of the request.
func showExtensionOperation(a *app.App, o wire.ExtensionOperation) error {
	if a.WantsJSON() {
		return a.ShowJSON(o)
	}
	return a.ShowOperation(o.Operation)
}
