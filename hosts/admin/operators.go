package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) operators() *cobra.Command {
	return group("operator", "users who may use the operator's console of the dashboard",
		m.onEmail(&cobra.Command{
			Use: "add", Short: "let a user use the operator's console",
			Long: "Let a user use the operator's console of the dashboard, in sessions in which the last proof of who it is was by a\n" +
				"passkey. A user who has none adds one in the dashboard first.",
		}, func(ctx context.Context, o *operator.Operator, email string) (output, error) {
			return row{{"email", email}, {"operator", true}}, o.AddOperator(ctx, email)
		}),
		m.onEmail(&cobra.Command{Use: "remove", Short: "take that back, from the user's next request on"},
			func(ctx context.Context, o *operator.Operator, email string) (output, error) {
				return row{{"email", email}, {"operator", false}}, o.RemoveOperator(ctx, email)
			}),
		m.command("list", "list who may use the operator's console, and how many passkeys they have",
			func(ctx context.Context, o *operator.Operator) (output, error) {
				list, err := o.Operators(ctx)
				return tableOf(list, operatorRow).only("email", "name", "addedAt", "passkeys"), err
			}))
}

func operatorRow(e ports.OperatorEntry) row {
	return row{{"userId", e.UserID}, {"email", e.Email}, {"name", e.Name}, {"addedAt", e.AddedAt}, {"passkeys", e.Passkeys}}
}
