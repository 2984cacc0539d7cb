package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) operation() *cobra.Command {
	return group("operation", "asynchronous operations", m.operationList(),
		m.operationOne("show", "show one operation, including kinds that the API does not list", (*operator.Operator).Operation),
		m.operationOne("cancel", "request the cancellation of an operation", (*operator.Operator).CancelOperation),
		m.deleteUnverified())
}

func (m *metadata) deleteUnverified() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "delete-unverified",
		Short: "delete a database without a deletion backup, so that it cannot be recovered",
		Long: "Delete a database whose deletion backup cannot be made or verified. It is taken out of service as soon as\n" +
			"its server can, nobody can recover it, and what it holds is gone when its time of recovery is over.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log has it")
	return onID(m, required(cmd, "reason"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			found, err := o.DeleteUnverified(ctx, db, person(), reason)
			return operationRow(found), err
		})
}

func (m *metadata) operationList() *cobra.Command {
	return m.ofDatabase("list", "list the operations of a database, newest first, including kinds that the API does not list",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID, p ports.Page) (output, error) {
			found, err := o.Operations(ctx, db, p)
			return tableOf(found, operationRow), err
		})
}

func (m *metadata) operationOne(
	use, short string, do func(*operator.Operator, context.Context, id.OperationID) (operation.Operation, error),
) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	return onID(m, cmd, "operation", func(ctx context.Context, o *operator.Operator, op id.OperationID) (output, error) {
		found, err := do(o, ctx, op)
		return operationRow(found), err
	})
}

func operationRow(o operation.Operation) row {
	return row{
		{"operationId", o.ID}, {"databaseId", o.DatabaseID}, {"type", o.Kind}, {"status", o.Status}, {"stage", o.Stage},
		{"progress", o.Progress}, {"createdAt", stamp(&o.CreatedAt)}, {"finishedAt", stamp(o.FinishedAt)},
		{"errorCode", string(o.ErrorCode)}, {"errorMessage", o.ErrorText}, {"leaseOwner", o.Owner}, {"leaseEpoch", o.Epoch},
		{"leaseUntil", stamp(o.Until)},
	}
}
