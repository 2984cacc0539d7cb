package databases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func databasesWindow(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "window DATABASE", Short: "Show as of which moments a database can be had back", Args: cobra.ExactArgs(1),
		Long: `Show from when to when a database can be had back as it was at any second, and what is missing in between. "svc databases
clone --at" makes a database that begins with what it held then. A deleted database can be had back up to its deletion,
until it is purged.`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				of, err := everNamed(ctx, a, c, args[0])
				if err != nil {
					return err
				}
				w, err := c.Recovery.GetWindow(ctx, of)
				if err != nil {
					return err
				}
				return a.ShowRecord(w, windowFields(w)...)
			})
		},
	}
}

// everNamed finds a database by its name or its ID, a deleted one where no other has the name.
func everNamed(ctx context.Context, a *app.App, c *apiclient.Client, name string) (id.DatabaseID, error) {
	of, err := a.DatabaseNamed(ctx, name)
	var missing app.NotFound
	if !errors.As(err, &missing) {
		return of, err
	}
	if deleted, none := DeletedNamed(ctx, a, c, name); none == nil {
		return deleted, nil
	}
	return of, err // which says more than that the key may not see deleted ones
}

func windowFields(w wire.RecoveryWindow) []app.Field {
	fields := []app.Field{{"From", w.From}, {"To", w.To}}
	if w.From == nil {
		why := "nothing yet"
		switch {
		case w.PlanDays == 0:
			why = "nothing: the plan has no recovery to a point in time"
		case !w.Archived:
			why = "nothing: the database server keeps no archive"
		}
		fields = []app.Field{{"Can be had back", why}}
	}
	for _, g := range w.Gaps {
		fields = append(fields, app.Field{"Missing", missing(g)})
	}
	if w.PlanDays > 0 {
		fields = append(fields, app.Field{"Plan", fmt.Sprintf("%d days back", w.PlanDays)})
	}
	if w.ProvenFrom != nil {
		fields = append(fields, app.Field{"Proven from", w.ProvenFrom})
	}
	if d := w.LastDrill; d != nil {
		fields = append(fields, app.Field{"Last drill", drilled(*d)})
	}
	return fields
}

// drilled says how a drill has ended.
func drilled(d wire.RecoveryDrill) string {
	outcome, of := string(d.Outcome), "this database"
	if d.Outcome == drill.Failed {
		outcome = "FAILED"
	}
	if d.Scope == wire.DrillOfServer {
		of = "another database of the server"
	}
	return fmt.Sprintf("%s: %s of %s, on %s, in %d s", outcome, d.PointInTime.UTC().Format(time.RFC3339), of,
		d.RanAt.UTC().Format(time.RFC3339), d.Seconds)
}

func missing(g wire.RecoveryGap) string {
	why := string(g.Reason)
	switch g.Reason {
	case recovery.SegmentsMissing:
		why = "could not be stored, or was lost"
	case recovery.NotArchived:
		why = "there was no archive"
	}
	return fmt.Sprintf("%s to %s: %s", g.From.UTC().Format(time.RFC3339), g.To.UTC().Format(time.RFC3339), why)
}
