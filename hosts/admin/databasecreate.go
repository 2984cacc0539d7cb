package admin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/pgversion"
)

func (m *metadata) databaseCreate() *cobra.Command {
	var owner, on, reason, model, environment, schedule string
	var version int
	var r databases.CreateRequest
	cmd := &cobra.Command{
		Use: "create", Short: "make a database of an account and print its password; it cannot be shown again", Args: cobra.NoArgs,
		Long: "Make a database of an account, as its owner can, and print its password, once. It counts against the account's\n" +
			"quota. With --server it is made there or not at all; without, on the server that has the most room.",
	}
	f := cmd.Flags()
	f.StringVar(&owner, "account", "", called[id.AccountID]())
	f.StringVar(&on, "server", "", "the only "+called[id.ServerID]())
	f.StringVar(&r.Name, "name", "", "its name in PostgreSQL, and that of its owner's login")
	f.StringVar(&r.DisplayName, "display-name", "", "what people call it; by default its name")
	f.StringVar(&model, "role-model", string(database.Managed), "managed, or single_login")
	f.StringVar(&environment, "environment", "", "production, staging, development or other; by default none")
	f.StringVar(&schedule, "scheduled-backup", string(database.Daily), "daily or none")
	f.IntVar(&version, "postgres-version", 0, fmt.Sprintf("major version of PostgreSQL, %d to %d; by default that of --server, "+
		"or the account's, or %d", pgversion.Oldest, pgversion.Newest, pgversion.Default))
	f.StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if r.DisplayName == "" {
			r.DisplayName = r.Name
		}
		r.RoleModel, r.Schedule = given[database.RoleModel](model), given[database.Schedule](schedule)
		r.Environment = given[database.Environment](environment)
		if version != 0 {
			r.PostgresVersion = &version
		}
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
			of, err := find[id.AccountID](ctx, o, "account", owner)
			if err != nil {
				return nil, err
			}
			server, err := findAny[id.ServerID](ctx, o, "server", on)
			if err != nil {
				return nil, err
			}
			made, err := o.CreateDatabase(ctx, of, r, server, operation.Order{By: person(), Reason: reason})
			if err != nil {
				return nil, err
			}
			return row{
				{"databaseId", made.Record.ID}, {"name", made.Record.Name}, {"status", made.Record.Status},
				{"serverId", made.Record.ServerID}, {"host", made.Record.Host}, {"port", made.Record.Port},
				{"username", made.Username}, {"password", made.Password}, {"connectionString", made.ConnectionString},
			}, nil
		})
	}
	return required(cmd, "account", "name", "reason")
}

// given is a value that was chosen; nil for an empty one.
func given[T ~string](text string) *T {
	if text == "" {
		return nil
	}
	value := T(text)
	return &value
}
