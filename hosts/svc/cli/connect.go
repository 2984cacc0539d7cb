package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
)

func connect(a *app) *cobra.Command {
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
		ValidArgsFunction: a.completeDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
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

func showConnection(a *app, to connection) error {
	answer := struct {
		Host             string `json:"host"`
		Port             int    `json:"port"`
		Database         string `json:"database"`
		Username         string `json:"username"`
		ConnectionString string `json:"connectionString"`
	}{to.host, to.port, to.name, to.username, to.url()}
	return a.showRecord(answer, field{"Host", to.host}, field{"Port", to.port}, field{"Database", to.name},
		field{"Username", to.username}, field{"Connection string", answer.ConnectionString})
}

func showEnvironment(a *app, to connection) error {
	lines := to.variables()
	if to.password == "" {
		a.note("%s is left out: the API does not show the owner's password", passwordVariable)
	} else {
		lines = append(lines, variable{passwordVariable, to.password})
	}
	if a.wantsJSON() {
		answer := map[string]string{}
		for _, v := range lines {
			answer[v.name] = v.value
		}
		return a.showJSON(answer)
	}
	for _, v := range lines {
		if _, err := fmt.Fprintln(a.out, v.name+"="+quote(v.value)); err != nil {
			return err
		}
	}
	return nil
}
