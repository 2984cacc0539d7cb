package admin

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) drills() *cobra.Command {
	return group("drill", "proofs that archives give back what was", m.drillList(), m.drillRun())
}

func (m *metadata) drillList() *cobra.Command {
	var on string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "list drills, newest first", Args: cobra.NoArgs,
		Long: "List drills, newest first. In one a second of a database is had back beside its server, read whole, and\n" +
			"compared with what the service knew of it; why says what was wrong, or why it could not be run.",
	}
	cmd.Flags().StringVar(&on, "server", "", "only of this "+called[id.ServerID]())
	cmd.Flags().IntVar(&limit, "limit", 0, "most drills to list; 0 lists all")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
			of, err := findAny[id.ServerID](ctx, o, "server", on)
			if err != nil {
				return nil, err
			}
			list, err := o.Drills(ctx, of, ports.Page{Limit: limit})
			return tableOf(list, drillRow).only("begunAt", "pointInTime", "outcome", "seconds", "why"), err
		})
	}
	return cmd
}

func (m *metadata) drillRun() *cobra.Command {
	var on, db, at string
	cmd := &cobra.Command{
		Use: "run", Short: "have a server do its next drill now, whose outcome is in the list", Args: cobra.NoArgs,
		Long: "Have a server do its next drill now. It begins when the service next looks for drills, within seconds, and\n" +
			"takes minutes. It is of a random second of a random database, where no flag says otherwise.",
	}
	cmd.Flags().StringVar(&on, "server", "", called[id.ServerID]())
	cmd.Flags().StringVar(&db, "database", "", "of this "+called[id.DatabaseID]()+"; its server is then known")
	cmd.Flags().StringVar(&at, "at", "", "as of this time with its offset, such as 2026-03-01T12:30:00+01:00; needs --database")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var moment *time.Time
		if at != "" {
			t, err := recovery.Parse(at)
			if err != nil {
				return err
			}
			moment = &t
		}
		if on == "" && db == "" {
			return fault.Invalid("server", "name a server, or a database")
		}
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (_ output, err error) {
			order := operator.DrillOrder{At: moment}
			if order.ServerID, err = findAny[id.ServerID](ctx, o, "server", on); err != nil {
				return nil, err
			}
			if order.DatabaseID, err = findAny[id.DatabaseID](ctx, o, "database", db); err != nil {
				return nil, err
			}
			return row{{"due", "now"}}, o.OrderDrill(ctx, order)
		})
	}
	return cmd
}

func drillRow(d drill.Drill) row {
	outcome := string(d.Outcome)
	if d.EndedAt == nil {
		outcome = "running"
	}
	return row{
		{"drillId", d.ID}, {"serverId", d.ServerID}, {"databaseId", d.DatabaseID}, {"pointInTime", d.PointInTime},
		{"begunAt", d.BegunAt}, {"endedAt", d.EndedAt}, {"outcome", outcome}, {"why", d.Why}, {"repeats", d.Repeats},
		{"filename", d.Filename}, {"seconds", d.Seconds()}, {"facts", d.Facts},
	}
}
