package admin

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
)

func (m *metadata) forward() *cobra.Command {
	return group("forward", "servers that send on who still comes for databases that they have left",
		m.forwardList(), m.forwardEnd())
}

func (m *metadata) forwardList() *cobra.Command {
	return m.command("list", "list the servers that send on, and for which databases",
		func(ctx context.Context, o *operator.Operator) (output, error) {
			found, err := o.Forwards(ctx)
			if err != nil {
				return nil, err
			}
			rows := make(table, 0, len(found))
			for _, f := range found {
				one, err := forwardRow(ctx, o, f)
				if err != nil {
					return nil, err
				}
				rows = append(rows, one)
			}
			return rows.only("database", "from", "until", "told", "trouble"), nil
		})
}

func forwardRow(ctx context.Context, o *operator.Operator, f move.Forward) (row, error) {
	r, err := databaseNamed(ctx, o, f.DatabaseID)
	if err != nil {
		return nil, err
	}
	s, _, err := o.Server(ctx, f.ServerID)
	until := f.Until
	if f.EndedAt != nil {
		until = *f.EndedAt
	}
	return append(r, row{
		{"serverId", f.ServerID}, {"from", s.Name}, {"host", s.PublicHost}, {"until", until.UTC().Truncate(time.Second)},
		{"told", f.Sent != "" && f.Welcomed != ""}, {"address", some(f.Address)}, {"failures", f.Failures},
		{"trouble", some(f.Trouble)},
	}...), err
}

func (m *metadata) forwardEnd() *cobra.Command {
	var on, reason string
	cmd := &cobra.Command{
		Use: "end", Short: "send nobody on any more who comes for a database to a server that it has left",
	}
	cmd.Flags().StringVar(&on, "server", "", "only by this "+called[id.ServerID]()+"; by default by all that it has left")
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	return onID(m, required(cmd, "reason"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			of, err := findAny[id.ServerID](ctx, o, "server", on)
			if err != nil {
				return nil, err
			}
			err = o.EndForwards(ctx, db, of, operation.Order{By: person(), Reason: reason})
			return row{{"databaseId", db}, {"ended", err == nil}}, err
		})
}
