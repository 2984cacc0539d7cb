package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) legacyRoles() *cobra.Command {
	route := rollout.LegacyEnrolment
	return group("legacy-roles", "additional roles of databases with a single login",
		m.activation("activate", "let a database, and with it its account, have them; the feature must be enabled, too", true,
			(*operator.Operator).ActivateLegacyRoles),
		m.activation("deactivate", "withdraw that; the roles that there are stay", false, (*operator.Operator).DeactivateLegacyRoles),
		m.enrolledList("list the databases that are activated", &route, "overlay",
			func(r ports.DatabaseEntry) any { return r.OverlayStatus }))
}

func (m *metadata) activation(
	use, short string, on bool, do func(*operator.Operator, context.Context, id.DatabaseID) error,
) *cobra.Command {
	return onID(m, &cobra.Command{Use: use, Short: short}, "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			if err := do(o, ctx, db); err != nil {
				return nil, err
			}
			named, err := databaseNamed(ctx, o, db)
			return append(named, row{{"activated", on}}...), err
		})
}
