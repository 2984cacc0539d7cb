package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

func (m *metadata) databaseClone() *cobra.Command {
	var on, reason string
	var wait bool
	var q clone.Request
	cmd := &cobra.Command{
		Use: "clone", Short: "make a database that begins with what another one holds, and print its password",
		Long: "Make a database of the same account that begins with what another one holds, as its owner can, and print its\n" +
			"password, once. It counts against the account's quota. With --server it is made there or not at all; without, beside\n" +
			"the other one, or where there is room. Its server has the same version of PostgreSQL.",
	}
	f := cmd.Flags()
	f.StringVar(&on, "server", "", "the only "+called[id.ServerID]())
	f.StringVar(&q.Name, "name", "", "its name in PostgreSQL, and that of its owner's login")
	f.StringVar(&q.DisplayName, "display-name", "", "what people call it; by default its name")
	f.StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	f.BoolVar(&wait, "wait", false, waitUsage)
	return onID(m, required(cmd, "name", "reason"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			if q.DisplayName == "" {
				q.DisplayName = q.Name
			}
			server, err := findAny[id.ServerID](ctx, o, "server", on)
			if err != nil {
				return nil, err
			}
			made, err := o.CloneDatabase(ctx, db, q, server, operation.Order{By: person(), Reason: reason})
			if err != nil {
				return nil, err
			}
			if wait {
				if made.Operation, err = waitFor(ctx, cmd, o, made.Operation.ID); err != nil {
					return nil, err
				}
			}
			return row{
				{"operationId", made.Operation.ID}, {"status", made.Operation.Status}, {"databaseId", made.Clone.Record.ID},
				{"name", made.Clone.Record.Name}, {"serverId", made.Clone.Record.ServerID}, {"host", made.Clone.Record.Host},
				{"port", made.Clone.Record.Port}, {"username", made.Clone.Username}, {"password", made.Clone.Password},
				{"connectionString", made.Clone.ConnectionString},
			}, nil
		})
}
