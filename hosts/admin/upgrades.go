package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

func (m *metadata) databaseConfirmUpgrade() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "confirm-upgrade", Short: "end a database's way back to an older PostgreSQL",
		Long: "End the way back of a database to the version of PostgreSQL that it had before it was moved to a server of a newer\n" +
			"one, as its owner can. Until then, database move takes it back to a server of exactly that version, with all that\n" +
			"was written since. Where no way back is open, nothing changes.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	return onID(m, m.asking(required(cmd, "reason")), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			if err := m.confirmDatabase(ctx, cmd, o, db, "End its way back to an older PostgreSQL?"); err != nil {
				return nil, err
			}
			confirmed, err := o.ConfirmUpgrade(ctx, db, operation.Order{By: person(), Reason: reason})
			return row{
				{"databaseId", confirmed.ID}, {"name", confirmed.Name}, {"postgresVersion", confirmed.PostgresVersion},
				{"wayBack", orNull(confirmed.WayBack)},
			}, err
		})
}
