package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

func (m *metadata) database() *cobra.Command {
	return group("database", "databases", m.databaseList(), m.databaseShow(), m.databaseCreate(), m.databaseClone(),
		m.databaseStop(), m.databaseStart(), m.databaseBackup(), m.databaseRestore(), m.databaseOpen(), m.databaseRecover(),
		m.databaseMove(), m.databaseMovable(), m.databaseRehearse(), m.databaseConfirmUpgrade(), m.databaseFinishDeletion(),
		m.databaseAdopt(), m.databaseDropUnknown(), m.databaseAdoptRole(), m.databaseDropRole(), m.rotateOwner())
}

func (m *metadata) databaseRecover() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "bring a deleted database back that is not purged yet, with or without a deletion backup",
		Long: "Put a deleted database back into service as it was. Its owner can do that only with a whole deletion backup and in\n" +
			"time; this can be done until the purge begins. It prints the operation, which operation show follows, and which waits\n" +
			"while the account is suspended.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	return onID(m, required(cmd, "reason"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			found, err := o.Undelete(ctx, db, person(), reason)
			return operationRow(found), err
		})
}

func (m *metadata) databaseOpen() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "open",
		Short: "let customers in again whose database was closed for its size, so that they can delete",
		Long: "Let customers in again whose database was closed for its size, so that they can delete. It stays read-only by\n" +
			"default while it is over its quota, and is closed again once it is larger than \"closesAboveBytes\". To raise the\n" +
			"quota instead: account set --database-bytes.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	return onID(m, required(cmd, "reason"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			r, err := o.OpenDatabase(ctx, db, person(), reason)
			return row{
				{"databaseId", db}, {"database", r.Name}, {"storageStatus", r.StorageStatus}, {"sizeBytes", terminal.Size(r.SizeBytes)},
				{"quotaBytes", terminal.Size(r.StorageQuota())},
				{"closesAboveBytes", terminal.Size(r.Storage().ClosesAbove(r.StorageQuota()))},
			}, err
		})
}
