// Package trusts has the commands of svc about whose tokens the CI namespaces of an account trust.
package trusts

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// Command makes the command "svc trusts".
func Command(a *app.App) *cobra.Command {
	c := app.Group("trusts", "Say which CI runs get keys for previews without a stored key",
		trustsNamespaces(a),
		trustsList(a),
		trustsAdd(a),
		trustsRemove(a),
	)
	c.Long = `Say which CI runs get keys for previews without a stored key.

A CI namespace keeps the previews of one pipeline. It trusts OIDC tokens of CI systems: by their issuer, whom they are for, and
whose they are. "svc auth ci" exchanges such a token for a key of the namespace.

A namespace is named by its name or its ID. All of this needs a key with full access to the account.`
	return c
}

func trustsNamespaces(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "namespaces", Short: "List the CI namespaces of the account, revoked ones too", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				const none = "No CI namespaces. The dashboard makes them, under Previews."
				return app.ShowAll(a, app.Sequence(c.CINamespaces.List(ctx)), none, func(n wire.Namespace) []app.Field {
					return []app.Field{{"NAME", n.Name}, {"REVOKED", n.RevokedAt}, {"CREATED", n.CreatedAt}, {"ID", n.ID}}
				})
			})
		},
	}
}

func trustsList(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "list NAMESPACE", Short: "List whose tokens a CI namespace trusts", Args: cobra.ExactArgs(1),
		ValidArgsFunction: completeNamespace(a),
		RunE: onNamespace(a, func(ctx context.Context, c *apiclient.Client, of id.NamespaceID, _ []string) error {
			const none = "No trusts: pipelines need a stored key."
			return app.ShowAll(a, app.Sequence(c.CINamespaces.ListTrusts(ctx, of)), none, func(t wire.Trust) []app.Field {
				return []app.Field{
					{"ISSUER", t.Issuer}, {"SUBJECT", t.Subject}, {"AUDIENCE", t.Audience}, {"CREATED", t.CreatedAt}, {"ID", t.ID},
				}
			})
		}),
	}
}

func trustsAdd(a *app.App) *cobra.Command {
	var b wire.AddTrust
	cmd := &cobra.Command{
		Use: "add NAMESPACE --issuer URL --audience TEXT --subject PATTERN", Short: "Have a CI namespace trust tokens",
		Args: cobra.ExactArgs(1),
		Long: `Have a CI namespace trust the tokens of an issuer, for an audience, with the subjects of a pattern.

Whoever gets such a token can have a key of the namespace. In the pattern, * stands for characters up to the next colon, and a
final :** for all that follows.`,
		Example: `  svc trusts add web --issuer https://token.actions.githubusercontent.com \
    --audience https://pgherd.example.com --subject repo:acme/shop:pull_request`,
		ValidArgsFunction: completeNamespace(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := citoken.NewTrust(b.Issuer, b.Audience, b.Subject); err != nil {
				return app.Usage("%w", err)
			}
			return onNamespace(a, func(ctx context.Context, c *apiclient.Client, of id.NamespaceID, _ []string) error {
				added, err := c.CINamespaces.AddTrust(ctx, of, b)
				return a.Done(added, err, "%s trusts the tokens of %s for %s.", args[0], added.Issuer, added.Subject)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&b.Issuer, "issuer", "", "https URL of the issuer, to the letter as in its tokens")
	cmd.Flags().StringVar(&b.Audience, "audience", "", "whom the tokens must be for, and nobody else")
	cmd.Flags().StringVar(&b.Subject, "subject", "", "whose the tokens must be, as in repo:acme/shop:ref:refs/heads/*")
	return cmd
}

func trustsRemove(a *app.App) *cobra.Command {
	return a.Confirmed(&cobra.Command{
		Use: "remove NAMESPACE TRUST", Short: "Trust tokens no more, and end the keys that were made by them",
		Args: cobra.ExactArgs(2),
		Long: `Trust the tokens no more, and end the keys that were made by them, at once. The trust is named by its ID, which
"svc trusts list" shows.`,
		ValidArgsFunction: completeNamespace(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			trust, err := app.WantID[id.TrustID](args[1], "TRUST")
			if err != nil {
				return err
			}
			if err := a.Ask(args[1], "This ends the keys that were made by the trust "+args[1]+", at once."); err != nil {
				return err
			}
			return onNamespace(a, func(ctx context.Context, c *apiclient.Client, of id.NamespaceID, _ []string) error {
				err := c.CINamespaces.RemoveTrust(ctx, of, trust)
				return a.Done(map[string]string{"id": args[1]}, err, "%s trusts those tokens no more.", args[0])
			})(cmd, args)
		},
	})
}

// onNamespace runs a command whose first argument is a namespace.
func onNamespace(
	a *app.App, do func(context.Context, *apiclient.Client, id.NamespaceID, []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
			of, is := app.IDOf[id.NamespaceID](args[0])
			if !is {
				found, err := app.Named(app.Sequence(c.CINamespaces.List(ctx)), args[0], "CI namespace",
					func(n wire.Namespace) string { return n.Name })
				if err != nil {
					return err
				}
				of = found.ID
			}
			return do(ctx, c, of, args[1:])
		})
	}
}

// completeNamespace offers the names of namespaces that are not revoked.
func completeNamespace(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.Names(cmd, func(ctx context.Context, c *apiclient.Client) (names []string, err error) {
			list, err := c.CINamespaces.List(ctx)
			for _, n := range list {
				if n.RevokedAt == nil {
					names = append(names, app.Offered(n.Name, string(n.ID), ""))
				}
			}
			return names, err
		})
	}
}
