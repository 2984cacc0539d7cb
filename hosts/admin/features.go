package admin

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) featureList() *cobra.Command {
	return m.command("list", "list the features, whether they are on, and how many databases are enrolled",
		func(ctx context.Context, o *operator.Operator) (output, error) {
			found, err := o.FeatureList(ctx)
			return tableOf(found, func(f operator.Feature) row {
				enrolled := any(nil)
				if len(f.Enrolled) > 0 {
					enrolled = counts(f.Enrolled)
				}
				return row{
					{"feature", f.Name}, {"enabled", f.Enabled}, {"changedAt", f.ChangedAt}, {"enrolled", enrolled},
				}
			}), err
		})
}

func maintenanceStatus(ctx context.Context, o *operator.Operator) (output, error) {
	on, since, err := o.Maintenance(ctx)
	status := "off"
	if on {
		status = "on"
	}
	return row{{"maintenance", status}, {"changedAt", since}}, err
}

func (m *metadata) enrollList() *cobra.Command {
	route := rollout.All
	cmd := m.enrolledList("list the databases that are enrolled for limited-rollout routes", &route, "routes",
		func(r ports.DatabaseEntry) any { return r.Enrolments })
	cmd.Flags().StringVar(&route, "route", route, strings.Join(rollout.Routes(), ", ")+" or "+rollout.All)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		_, err := rollout.ParseRoute(route)
		return err
	}
	return cmd
}

// enrolledList lists the databases that have a route, with a column of the command's own.
func (m *metadata) enrolledList(
	short string, route *string, column string, value func(ports.DatabaseEntry) any,
) *cobra.Command {
	var of string
	var limit int
	cmd := &cobra.Command{Use: "list", Short: short, Args: cobra.NoArgs}
	f := cmd.Flags()
	f.StringVar(&of, "account", "", "only those of an "+called[id.AccountID]())
	f.IntVar(&limit, "limit", 0, limitUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (_ output, err error) {
			filter := ports.DatabaseFilter{Route: *route}
			if filter.AccountID, err = findAny[id.AccountID](ctx, o, "account", of); err != nil {
				return nil, err
			}
			found, err := o.Databases(ctx, filter, ports.Page{Limit: limit})
			return tableOf(found, func(r ports.DatabaseEntry) row {
				return row{
					{"databaseId", r.ID}, {"name", r.Name}, {"status", r.Status}, {"accountId", r.AccountID}, {"email", r.Email},
					{column, value(r)},
				}
			}).only("databaseId", "name", "email", column), err
		})
	}
	return cmd
}
