package admin

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
)

func (m *metadata) enroll() *cobra.Command {
	cmd := m.enrolment("enroll", "allow a database to use a limited-rollout route, whose feature must be enabled, too",
		(*operator.Operator).Enroll)
	cmd.AddCommand(m.enrollList())
	return cmd
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
			if err := do(o, ctx, db, route); err != nil {
				return nil, err
			}
			named, err := databaseNamed(ctx, o, db)
			return append(named, row{{"route", route}, {"enrolled", use == "enroll"}}...), err
		})
}
