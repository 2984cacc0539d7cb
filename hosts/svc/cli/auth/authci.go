package auth

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func authCI(a *app.App) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use: "ci", Short: "Exchange the token of a CI system for a preview CI key", Args: cobra.NoArgs,
		Long: `Read the OIDC token that a CI system has made for a run from standard input, and print a preview CI key.

The key works for an hour. No other key is needed, and none is stored. "svc trusts" says which runs a namespace trusts.

A token works once. If the answer is lost, the run needs another one.`,
		Example: `  SVC_API_KEY=$(svc auth ci --namespace ID < token)`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			of, err := app.WantID[id.NamespaceID](namespace, "--namespace")
			if err != nil {
				return err
			}
			t, err := a.FindService()
			if err != nil {
				return err
			}
			t.Key = ""
			if a.Client, err = a.ClientOf(t); err != nil {
				return err
			}
			token, err := readToken(a)
			if err != nil {
				return err
			}
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				key, err := c.CITokens.Exchange(ctx, wire.ExchangeToken{NamespaceID: of, Token: token})
				var refused *apiclient.Error
				if errors.As(err, &refused) && refused.Code == fault.Unauthorized {
					return app.Next(err,
						"the token was used before or has expired, or the namespace does not trust it: the operator of the "+
							"service can see which")
				}
				if err != nil {
					return err
				}
				return a.Say(key, "%s", key.APIKey)
			})
		},
	}
	cmd.Flags().StringVar(&namespace, "namespace", "", "the ID of the pipeline's namespace")
	return cmd
}

// readToken reads a token from standard input.
func readToken(a *app.App) (string, error) {
	if f, is := a.In.(*os.File); is && term.IsTerminal(int(f.Fd())) {
		return "", app.Usage("the token is needed on standard input")
	}
	text, err := a.UntilInterrupted(func() (string, error) {
		text, err := io.ReadAll(io.LimitReader(a.In, citoken.MaxToken+2)) // with a line end
		return string(text), err
	})
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(text)
	if err := citoken.CheckText(text); err != nil {
		return "", app.Usage("standard input holds no token: %w", err)
	}
	return text, nil
}
