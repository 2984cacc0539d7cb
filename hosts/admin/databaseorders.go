package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
)

func (m *metadata) databaseStop() *cobra.Command {
	return m.lifecycle(database.Stop, "stop a database: close its connections, and let no customer log in",
		"Close the connections of a database, and let no customer log in until it is started. Its owner can start it again;\n"+
			"account suspend keeps an account's databases closed.")
}

func (m *metadata) databaseStart() *cobra.Command {
	return m.lifecycle(database.Start, "start a stopped database",
		"Let customers into a stopped database again. One of a suspended account is then open as soon as that is resumed.")
}

func (m *metadata) lifecycle(action database.Event, short, long string) *cobra.Command {
	cmd := &cobra.Command{Use: string(action), Short: short, Long: long}
	return m.onDatabase(cmd, func(
		ctx context.Context, o *operator.Operator, db id.DatabaseID, by operation.Order,
	) (row, *operation.Operation, error) {
		status, op, err := o.SetLifecycle(ctx, db, action, by)
		return row{{"operationId", nil}, {"databaseId", db}, {"status", status}}, op, err
	})
}

func (m *metadata) databaseBackup() *cobra.Command {
	cmd := &cobra.Command{
		Use: "backup", Short: "make a backup of a database now",
		Long: "Make a backup of a database now, as its owner can. It counts against the account's quota for backups.",
	}
	return m.onDatabase(cmd, func(
		ctx context.Context, o *operator.Operator, db id.DatabaseID, by operation.Order,
	) (row, *operation.Operation, error) {
		op, err := o.BackUp(ctx, db, by)
		return nil, &op, err
	})
}

func (m *metadata) databaseRestore() *cobra.Command {
	var from string
	var shrink bool
	cmd := &cobra.Command{
		Use: "restore", Short: "bring a database back to what one of its backups holds",
		Long: "Bring a database back to what one of its verified backups holds, with the logins, passwords and limits that it has\n" +
			"now; what was written since the backup is gone. It is restored beside the database, compared, and put in its place:\n" +
			"where that fails, the database is as it was. backup list --database names the files.",
	}
	cmd.Flags().StringVar(&from, "backup", "", "the file, such as 20261129_020000.sql.gz")
	cmd.Flags().BoolVar(&shrink, "confirm-shrink", false, "also if it removes more than nine tenths of the rows")
	return m.onDatabase(m.asking(required(cmd, "backup")), func(
		ctx context.Context, o *operator.Operator, db id.DatabaseID, by operation.Order,
	) (row, *operation.Operation, error) {
		file, err := backup.ParseFilename(from)
		if err != nil {
			return nil, nil, err
		}
		if err := m.confirmDatabase(ctx, cmd, o, db, "Restore it from "+from+"?"); err != nil {
			return nil, nil, err
		}
		op, err := o.Restore(ctx, db, file, restore.Consents{ConfirmShrink: shrink}, by)
		return nil, &op, err
	})
}

// onDatabase is a command by which an operator has done what the owner of a database can do. do returns the operation that does
// it or, where nothing has to be done, what is printed.
func (m *metadata) onDatabase(cmd *cobra.Command, do func(
	context.Context, *operator.Operator, id.DatabaseID, operation.Order,
) (row, *operation.Operation, error)) *cobra.Command {
	var reason string
	var wait bool
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	cmd.Flags().BoolVar(&wait, "wait", false, waitUsage)
	return onID(m, required(cmd, "reason"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			done, op, err := do(ctx, o, db, operation.Order{By: person(), Reason: reason})
			switch {
			case err != nil:
				return nil, err
			case op == nil:
				return done, nil
			case !wait:
				return operationRow(*op), nil
			}
			ended, err := waitFor(ctx, cmd, o, op.ID)
			return operationRow(ended), err
		})
}
