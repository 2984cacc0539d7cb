package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/adoptions"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// onRole completes a command about an additional role of which the metadata and its server tell different things.
func (m *metadata) onRole(
	cmd *cobra.Command, do func(context.Context, *operator.Operator, adoptions.AskedRole) (output, error),
) *cobra.Command {
	var name, reason string
	cmd.Flags().StringVar(&name, "role", "", "the role's name in PostgreSQL, as the doctor shows it")
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	return onID(m, required(cmd, "role", "reason"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			return do(ctx, o, adoptions.AskedRole{
				Database: db, Username: name, Order: operation.Order{By: person(), Reason: reason},
			})
		})
}

func (m *metadata) databaseAdoptRole() *cobra.Command {
	return m.onRole(&cobra.Command{
		Use: "adopt-role", Short: "make a record for an additional role that a server has and the metadata do not know",
		Long: "Make a record for an additional role that the server of a database has and the metadata do not know, as after the\n" +
			"metadata were restored to an earlier moment. Who uses it goes on. Its password is to be rotated, as nobody can be shown\n" +
			"it. One that may not log in becomes a revoked one.",
	}, func(ctx context.Context, o *operator.Operator, q adoptions.AskedRole) (output, error) {
		made, err := o.AdoptRole(ctx, q)
		return row{
			{"roleId", made.ID}, {"username", made.Username}, {"accessProfile", made.AccessProfile},
			{"connectionLimit", made.ConnectionLimit}, {"status", made.Status},
		}, err
	})
}

func (m *metadata) databaseDropRole() *cobra.Command {
	cmd := m.asking(&cobra.Command{
		Use: "drop-role", Short: "remove an additional role that only the server has, or only the metadata",
		Long: "Remove an additional role that only the server of a database has, or only the metadata, as after these were restored\n" +
			"to an earlier moment. It is removed as by its owner: it can no longer log in, and where something depends on it, that\n" +
			"is named, and it stays so. One that both have is its owner's to delete.",
	})
	return m.onRole(cmd, func(ctx context.Context, o *operator.Operator, q adoptions.AskedRole) (output, error) {
		about := row{{"databaseId", q.Database}, {"role", q.Username}}
		if err := m.confirm(cmd, q.Username, "Remove it?", about); err != nil {
			return nil, err
		}
		done, err := o.DropRole(ctx, q)
		return row{{"username", q.Username}, {"removed", done}}, err
	})
}
