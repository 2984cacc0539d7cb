package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

func (m *metadata) rotateOwner() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "rotate-owner", Short: "give the owner's login of a database a new password, and print it once",
		Long: "Give the owner's login of a database a new password, where its owner has lost it and has no key to rotate it with.\n" +
			"The connections made with the old one are closed, and their open transactions rolled back. The new password is\n" +
			"printed once. While the status is pending the service goes on with it: run the command again for the password.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	return onID(m, m.asking(required(cmd, "reason")), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			const what = "Replace the password of its owner's login, and close the connections made with it?"
			if err := m.confirmDatabase(ctx, cmd, o, db, what); err != nil {
				return nil, err
			}
			done, err := o.RotateOwner(ctx, db, operation.Order{By: person(), Reason: reason})
			if err != nil {
				return nil, err
			}
			return row{
				{"changeId", done.ID}, {"databaseId", done.DatabaseID}, {"username", done.Username}, {"status", done.Status},
				{"credentialGeneration", done.CredentialGeneration}, {"password", some(done.Password)},
			}, nil
		})
}
