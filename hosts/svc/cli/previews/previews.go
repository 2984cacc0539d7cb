// Package previews has the commands of svc about the previews of a pipeline.
package previews

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// Command makes the command "svc previews".
func Command(a *app.App) *cobra.Command {
	c := app.Group("previews", "Make and delete the short-lived databases of a CI pipeline",
		previewsCreate(a),
		previewsGet(a),
		previewsExtend(a),
		previewsBackupPolicy(a),
		previewsDelete(a),
	)
	c.Long = `Make and delete the short-lived databases of a CI pipeline, for synthetic test data only.

They need a preview CI key, as in SVC_API_KEY: no other key can take its place. The operator of the service makes one, or
"svc auth ci" exchanges the token of a CI system for one.

A preview is named by the ID of its database, which "svc previews create" prints, or for "get" and
"delete" by its ref. The service deletes a preview at the end of its lease.`
	return c
}

// choices are what the request for the preview of a ref chooses.
type choices struct{ ttl, schedule string }

func (o *choices) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.ttl, "ttl", "24h", "the lease: from 1h to 72h, in whole hours")
	cmd.Flags().StringVar(&o.schedule, "scheduled-backup", string(database.NoSchedule), "daily or none")
}

// request is the request for the preview of a ref. Replays are compared with it, so it always names its choices.
func (o *choices) request(ref string) (b wire.CreatePreview, err error) {
	if err := preview.CheckRef(ref); err != nil {
		return b, app.Usage("%w", err)
	}
	hours, err := wantHours(o.ttl)
	if err != nil {
		return b, err
	}
	schedule, err := database.ParseSchedule(o.schedule)
	if err != nil {
		return b, app.Usage("--scheduled-backup: %w", err)
	}
	return wire.CreatePreview{Ref: ref, TTLHours: &hours, ScheduledBackup: &schedule}, nil
}

// wantHours reads a lease, as in 24h or 24.
func wantHours(text string) (int, error) {
	hours, err := strconv.Atoi(text)
	if err != nil {
		var d time.Duration
		if d, err = time.ParseDuration(text); d%time.Hour == 0 {
			hours = int(d / time.Hour)
		}
	}
	if err != nil || preview.CheckHours(hours) != nil {
		return 0, app.Usage("--ttl must be from 1h to %dh, in whole hours", preview.MostHours)
	}
	return hours, nil
}

func previewsCreate(a *app.App) *cobra.Command {
	var o choices
	var from copied
	cmd := &cobra.Command{
		Use: "create REF", Short: "Make the preview of a ref, or show the one that it has", Args: cobra.ExactArgs(1),
		Long: `Make the preview of a ref, such as a branch or a pull request, and print how to connect to it.

Where the ref has a preview that was made with the same choices, print that one. The password is left out once it was changed.

With --source, --at and --namespace, the preview has what a database of the account held at a moment. That needs a
full-account key, not a preview CI key, and the operator's leave. Nobody can connect before its operation has succeeded.`,
		Example: `  svc previews create pull/17
  svc previews create pull/17 --jq .connection.connectionString
  svc previews create pull/17 --source shop --at '2026-03-01 12:30:00+01' --namespace ID --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := o.request(args[0])
			if err != nil {
				return err
			}
			if from.given() {
				return from.create(a, cmd, b)
			}
			return withCIKey(a, cmd, func(ctx context.Context, c *apiclient.Client) error {
				made, err := c.Previews.Create(ctx, b)
				if err != nil {
					return err
				}
				return showCreated(a, made)
			})
		},
	}
	o.add(cmd)
	from.add(cmd)
	return cmd
}

func showCreated(a *app.App, made wire.CreatedPreview) error {
	to := made.Connection
	return a.ShowRecord(made, append(previewFields(made.Data),
		app.Field{"Host", to.Host},
		app.Field{"Port", to.Port},
		app.Field{"Database", to.Database},
		app.Field{"Username", to.Username},
		app.Field{"Password", to.Password},
		app.Field{"Connection string", to.ConnectionString})...)
}

func previewFields(p wire.Preview) []app.Field {
	return []app.Field{
		{"Ref", p.Ref},
		{"ID", p.DatabaseID},
		{"Namespace", p.NamespaceID},
		{"Status", p.LeaseStatus},
		{"Lease", p.LeaseGeneration},
		{"Expires", p.ExpiresAt},
		{"Daily backups", p.ScheduledBackup == database.Daily},
		{"Recovery until", p.RecoveryDeadline},
		{"Data of", sourceOf(p)},
		{"As of", p.PointInTime},
	}
}

// showPreview shows a preview, unless there is an error.
func showPreview(a *app.App) func(wire.Preview, error) error {
	return func(p wire.Preview, err error) error {
		if err != nil {
			return err
		}
		return a.ShowRecord(p, previewFields(p)...)
	}
}

// previewName is how a command names a preview: by its ID, which is an argument, or by its ref.
type previewName struct{ ref string }

func (n *previewName) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.ref, "ref", "", "the preview that this ref has")
}

// byRef reports which of the two a command was given.
func (n *previewName) byRef(cmd *cobra.Command, args []string) (bool, error) {
	given := cmd.Flags().Changed("ref")
	if given == (len(args) == 1) {
		return false, app.Usage("a preview is named by its ID, or by its ref with --ref")
	}
	if given {
		if err := preview.CheckRef(n.ref); err != nil {
			return false, app.Usage("%w", err)
		}
	}
	return given, nil
}

func previewsGet(a *app.App) *cobra.Command {
	var name previewName
	cmd := &cobra.Command{
		Use: "get [PREVIEW]", Short: "Show how a preview stands, also a deleted one, or that of a ref", Args: cobra.MaximumNArgs(1),
		Long:    "Show how a preview stands, also a deleted one. With --ref, show the preview that a ref has, which is not deleted.",
		Example: `  svc previews get --ref pull/17 --jq .databaseId`,
		RunE: func(cmd *cobra.Command, args []string) error {
			byRef, err := name.byRef(cmd, args)
			if err != nil {
				return err
			}
			if byRef {
				return withCIKey(a, cmd, func(ctx context.Context, c *apiclient.Client) error {
					return showPreview(a)(c.Previews.Find(ctx, name.ref))
				})
			}
			return onPreview(a, cmd, args[0], func(ctx context.Context, c *apiclient.Client, of id.DatabaseID) error {
				return showPreview(a)(c.Previews.Get(ctx, of))
			})
		},
	}
	name.add(cmd)
	return cmd
}

func previewsExtend(a *app.App) *cobra.Command {
	var ttl string
	cmd := &cobra.Command{
		Use: "extend PREVIEW", Short: "Renew the lease of a preview", Args: cobra.ExactArgs(1),
		Long: "Renew the lease of a preview, from now on, and never to an earlier end. A lease that has ended cannot be renewed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			hours, err := wantHours(ttl)
			if err != nil {
				return err
			}
			return onPreview(a, cmd, args[0], func(ctx context.Context, c *apiclient.Client, of id.DatabaseID) error {
				return showPreview(a)(c.Previews.Extend(ctx, of, wire.ExtendPreview{TTLHours: hours}))
			})
		},
	}
	cmd.Flags().StringVar(&ttl, "ttl", "24h", "the lease: from 1h to 72h, in whole hours")
	return cmd
}

func previewsBackupPolicy(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "backup-policy PREVIEW daily|none", Short: "Choose whether the service makes daily backups of a preview",
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) != 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"daily", "none"}, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			schedule, err := database.ParseSchedule(args[1])
			if err != nil {
				return app.Usage("%w", err)
			}
			return onPreview(a, cmd, args[0], func(ctx context.Context, c *apiclient.Client, of id.DatabaseID) error {
				return showPreview(a)(c.Previews.SetBackupPolicy(ctx, of, wire.SetBackupPolicy{ScheduledBackup: schedule}))
			})
		},
	}
}

func previewsDelete(a *app.App) *cobra.Command {
	var name previewName
	cmd := &cobra.Command{
		Use: "delete [PREVIEW]", Short: "Have a preview deleted, or that of a ref", Args: cobra.MaximumNArgs(1),
		Long: `Have a preview deleted, with a backup. Until its recovery deadline, a key with full access to the account can recover it.

With --ref, the preview is the one that a ref has. A ref that has none is no error, and nothing is done then.`,
		Example: `  svc previews delete --ref pull/17 --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			byRef, err := name.byRef(cmd, args)
			if err != nil {
				return err
			}
			if byRef {
				return deleteOfRef(a, cmd, name.ref)
			}
			if _, err := app.WantID[id.DatabaseID](args[0], "PREVIEW"); err != nil {
				return err
			}
			if err := a.Ask(args[0], whatDeletion); err != nil {
				return err
			}
			return onPreview(a, cmd, args[0], func(ctx context.Context, c *apiclient.Client, of id.DatabaseID) error {
				p, err := c.Previews.Delete(ctx, of)
				return a.Done(p, err, "The preview of %s is being deleted.", p.Ref)
			})
		},
	}
	name.add(cmd)
	return a.Confirmed(cmd)
}

const whatDeletion = "This closes all connections of the preview, backs it up and deletes it."

// deleteOfRef has the preview of a ref deleted.
func deleteOfRef(a *app.App, cmd *cobra.Command, ref string) error {
	if err := a.Ask(ref, whatDeletion); err != nil {
		return err
	}
	return withCIKey(a, cmd, func(ctx context.Context, c *apiclient.Client) error {
		p, err := c.Previews.Find(ctx, ref)
		var refused *apiclient.Error
		switch {
		case errors.As(err, &refused) && refused.Code == fault.PreviewNotFound:
			return a.Say(map[string]string{"ref": ref}, "%s has no preview.", ref)
		case err != nil:
			return err
		}
		p, err = c.Previews.Delete(ctx, p.DatabaseID)
		return a.Done(p, err, "The preview of %s is being deleted.", ref)
	})
}

// onPreview runs a command about a preview, which is named by the ID of its database.
func onPreview(
	a *app.App, cmd *cobra.Command, name string, do func(context.Context, *apiclient.Client, id.DatabaseID) error,
) error {
	of, err := app.WantID[id.DatabaseID](name, "PREVIEW")
	if err != nil {
		return app.Next(err, `"svc previews get --ref REF" shows the preview that a ref has`)
	}
	return withCIKey(a, cmd, func(ctx context.Context, c *apiclient.Client) error { return do(ctx, c, of) })
}

// withCIKey is withAPI for what needs a preview CI key.
func withCIKey(a *app.App, cmd *cobra.Command, do func(context.Context, *apiclient.Client) error) error {
	return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
		err := do(ctx, c)
		var refused *apiclient.Error
		if errors.As(err, &refused) && refused.Code == fault.KeyScopeDenied {
			return app.Next(err, "set SVC_API_KEY to a preview CI key, which begins with %s_: the operator of the service makes one, "+
				`or "svc auth ci" gets one for an hour`, account.CIKeyPrefix)
		}
		return err
	})
}
