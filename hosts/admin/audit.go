package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

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
