package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
)

// behind holds what is done about metadata that went back in time.
func (m *metadata) behind() *cobra.Command {
	return group("metadata", "the metadata after a restore or a failover", m.confirmMetadata())
}

func (m *metadata) confirmMetadata() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "confirm", Short: "say that the metadata count, although servers have heard of more", Args: cobra.NoArgs,
		Long: "List what the doctor finds on the servers that have heard of operations which the metadata lack, and ask of each\n" +
			"whether the metadata count there. Until then nothing ends by time, on any server. Look at each difference before:\n" +
			"what the metadata say is deleted goes when its time is over.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the log of the installation has it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return m.operate(cmd, func(ctx context.Context, o *operator.Operator) error {
			servers, err := o.Patients(ctx)
			for _, s := range servers {
				if failed := m.confirmFor(ctx, cmd, o, s, operation.Order{By: person(), Reason: reason}); failed != nil {
					err = errors.Join(err, fmt.Errorf("server %s: %w", s.Name, failed))
				}
			}
			return err
		})
	}
	return m.asking(required(cmd, "reason"))
}

// confirmFor shows what differs on a server that has heard of more, and asks.
func (m *metadata) confirmFor(
	ctx context.Context, cmd *cobra.Command, o *operator.Operator, s server.Server, by operation.Order,
) error {
	lacking, err := o.Lacking(ctx, s)
	if err != nil || len(lacking) == 0 {
		return err
	}
	found, err := o.Examine(ctx, s, checkups.Options{})
	if err != nil {
		return err
	}
	rows := table{}
	for _, d := range found {
		rows = append(rows, diagnosisRow(s, d))
	}
	if err := m.show(cmd, rows.only("server", "code", "databaseId", "finding")); err != nil {
		return err
	}
	shown := row{{"server", s.Name}, {"operations", len(lacking)}, {"first", lacking[0]}}
	if err := m.confirm(cmd, s.Name, "Do the metadata count, which lack these operations?", shown); err != nil {
		return err
	}
	return o.ConfirmMetadata(ctx, s, by)
}
