package admin

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) enroll() *cobra.Command {
	return m.enrolment("enroll", "allow a database to use a limited-rollout route, whose feature must be enabled, too",
		(*operator.Operator).Enroll)
}

func (m *metadata) unenroll() *cobra.Command {
	return m.enrolment("unenroll", "withdraw an enrolment", (*operator.Operator).Unenroll)
}

func (m *metadata) enrolment(
	use, short string, do func(*operator.Operator, context.Context, id.DatabaseID, string) error,
) *cobra.Command {
	var route string
	cmd := &cobra.Command{Use: use, Short: short}
	cmd.Flags().StringVar(&route, "route", "", strings.Join(rollout.Routes(), ", ")+" or "+rollout.All)
	return onID(m, required(cmd, "route"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			return row{{"databaseId", db}, {"route", route}, {"enrolled", use == "enroll"}}, do(o, ctx, db, route)
		})
}

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
	return m.ofDatabase("list", "list the operations of a database, newest first",
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

func (m *metadata) audit() *cobra.Command {
	return group("audit", "the activity log", m.auditInstallation(), m.auditAccount(),
		m.ofDatabase("list", "list the activity of a database, newest first",
			func(ctx context.Context, o *operator.Operator, db id.DatabaseID, p ports.Page) (output, error) {
				found, err := o.Audit(ctx, db, p)
				return tableOf(found, auditedBy), err
			}))
}

func auditedBy(by plane.By[audit.Entry]) row {
	return append(auditRow(by.What), personRow(by.Person)...)
}

func (m *metadata) auditAccount() *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "account", Short: "list what was done to an account and to none of its databases, newest first"}
	cmd.Flags().IntVar(&limit, "limit", 0, "most entries to list; 0 lists all")
	return onID(m, cmd, "account", func(ctx context.Context, o *operator.Operator, a id.AccountID) (output, error) {
		found, err := o.AccountAudit(ctx, a, ports.Page{Limit: limit})
		return tableOf(found, auditedBy), err
	})
}

func (m *metadata) auditInstallation() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "installation", Short: "list what was done to the installation as a whole, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
				found, err := o.InstallationAudit(ctx, ports.Page{Limit: limit})
				return tableOf(found, auditRow), err
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "most entries to list; 0 lists all")
	return cmd
}

func auditRow(e audit.Entry) row {
	return row{{"id", e.ID}, {"at", stamp(&e.At)}, {"actor", e.Actor.Name}, {"action", e.Action}, {"details", e.Details}}
}

// personRow are the fields that name a person, without values where nobody is known.
func personRow(u *account.User) row {
	if u == nil {
		return row{{"userId", nil}, {"email", nil}}
	}
	return row{{"userId", u.ID}, {"email", u.Email}}
}

// ofDatabase is a list command about one database.
func (m *metadata) ofDatabase(
	use, short string, do func(context.Context, *operator.Operator, id.DatabaseID, ports.Page) (output, error),
) *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: use, Short: short}
	cmd.Flags().IntVar(&limit, "limit", 0, "most entries to list; 0 lists all")
	return onID(m, cmd, "database", func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
		return do(ctx, o, db, ports.Page{Limit: limit})
	})
}

// stamp writes a time as the API does; nil for none.
func stamp(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UTC().Format(time.RFC3339Nano)
}
