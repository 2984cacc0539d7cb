// Package connect has the commands of svc about connecting to a database.
package connect

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// Command makes the command "svc connect".
func Command(a *app.App) *cobra.Command {
	var to connecting
	var env bool
	cmd := &cobra.Command{
		Use: "connect DATABASE", Short: "Say how a program connects to a database", Args: cobra.ExactArgs(1),
		Long: `Say how a program connects to a database: where it is and as whom, or with --env as lines such as
PGHOST=db.example.com, which psql and most drivers read from their environment. These have the role's password, too.

A value is quoted for a shell where it has other characters than letters, digits and _./:@%+=,- in it. Docker's --env-file and
GitHub's $GITHUB_ENV take quotes for a part of the value: they need a file of --db-ca-file whose path needs none.

` + onConnections + ` The lines for the owner have no password.`,
		Example: `  set -a; eval "$(svc connect shop --role runtime --env)"; set +a
  docker run --env-file <(svc connect shop --role runtime --env) ...`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				found, err := to.find(ctx, a, c, args[0], env)
				if err != nil {
					return err
				}
				if env {
					return showEnvironment(a, found)
				}
				return showConnection(a, found)
			})
		},
	}
	to.add(a, cmd)
	cmd.Flags().BoolVar(&env, "env", false, "print variables of the environment, with the password")
	return cmd
}

func showConnection(a *app.App, to connection) error {
	answer := struct {
		Host             string `json:"host"`
		Port             int    `json:"port"`
		Database         string `json:"database"`
		Username         string `json:"username"`
		ConnectionString string `json:"connectionString"`
	}{to.host, to.port, to.name, to.username, to.url()}
	return a.ShowRecord(answer, app.Field{"Host", to.host}, app.Field{"Port", to.port}, app.Field{"Database", to.name},
		app.Field{"Username", to.username}, app.Field{"Connection string", answer.ConnectionString})
}

func showEnvironment(a *app.App, to connection) error {
	lines := to.variables()
	if to.password == "" {
		a.Note("%s is left out: the API does not show the owner's password", passwordVariable)
	} else {
		lines = append(lines, variable{passwordVariable, to.password})
	}
	if a.WantsJSON() {
		answer := map[string]string{}
		for _, v := range lines {
			answer[v.name] = v.value
		}
		return a.ShowJSON(answer)
	}
	for _, v := range lines {
		if _, err := fmt.Fprintln(a.Out, v.name+"="+app.Quote(v.value)); err != nil {
			return err
		}
	}
	return nil
}
