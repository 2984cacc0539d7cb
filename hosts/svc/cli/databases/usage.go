package databases

import (
	"context"
	"encoding/csv"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func databasesUsage(a *app.App) *cobra.Command {
	var from, to string
	var asCSV bool
	cmd := &cobra.Command{
		Use: "usage DATABASE", Short: "Show what a database used, hour by hour", Args: cobra.ExactArgs(1),
		Long: `Show what a database used, hour by hour: its size and that of its backups, connections that were in use (on
average, and the most at a time), clients that waited for one, queries, and how long clients waited. SEEN is for how
long of an hour the service saw the database; an hour in which it did not is missing. Hours are in UTC.

A period has 31 days at most.`,
		Example: `  svc databases usage shop --from 2026-11-01 --to 2026-12-01 --csv > november.csv
  svc databases usage shop --jq .total`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asCSV && a.WantsJSON() {
				return app.Usage("--csv prints no JSON: leave it out, or --json and --jq")
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				u, err := c.Usage.Get(ctx, of, from, to)
				switch {
				case err != nil:
					return err
				case asCSV:
					return writeUsage(a, u)
				case a.WantsJSON():
					return a.ShowJSON(u)
				}
				return showUsage(a, u)
			})(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "a time, or a day in UTC, as 2026-11-01; without it, 30 days before the end")
	f.StringVar(&to, "to", "", "a time, or a day in UTC; now, without it")
	f.BoolVar(&asCSV, "csv", false, "print CSV, with whole numbers of bytes")
	return cmd
}

func showUsage(a *app.App, u wire.Usage) error {
	const none = "The service did not see the database in that time."
	err := app.ShowList(a, u.Samples, none, func(s wire.UsageSample) []app.Field {
		return []app.Field{
			{"HOUR", s.At.UTC().Format("2006-01-02 15:04")}, {"SIZE", terminal.Size(s.SizeBytes)},
			{"BACKUPS", terminal.Size(s.BackupBytes)}, {"ACTIVE", decimal(s.Connections.Active.Average, 1)},
			{"PEAK", s.Connections.Active.Peak}, {"WAITING", decimal(s.Connections.Waiting.Average, 1)}, {"QUERIES", s.Queries},
			{"WAIT", terminal.Exactly(time.Duration(s.WaitMs) * time.Millisecond)},
			{"SEEN", terminal.Exactly(time.Duration(s.SeenSeconds) * time.Second)},
		}
	})
	if err == nil && len(u.Samples) > 0 {
		t := u.Total
		a.Note("in all: %s database hours, %s connection hours, %s hours, %s hours of backups",
			decimal(t.DatabaseHours, 2), decimal(t.ConnectionHours, 2), terminal.Size(t.ByteHours), terminal.Size(t.BackupByteHours))
	}
	return err
}

func decimal(v float64, places int) string { return strconv.FormatFloat(v, 'f', places, 64) }

// writeUsage writes the samples with the names of the API.
func writeUsage(a *app.App, u wire.Usage) error {
	w := csv.NewWriter(a.Out)
	rows := [][]string{{
		"at", "seenSeconds", "sizeBytes", "backupBytes", "activeAverage", "activePeak", "waitingAverage", "waitingPeak",
		"connectionCap", "queries", "waitMs",
	}}
	for _, s := range u.Samples {
		limit := ""
		if s.Connections.Cap != nil {
			limit = strconv.Itoa(*s.Connections.Cap)
		}
		rows = append(rows, []string{
			s.At.UTC().Format(time.RFC3339), whole(s.SeenSeconds), whole(s.SizeBytes), whole(s.BackupBytes),
			decimal(s.Connections.Active.Average, -1), strconv.Itoa(s.Connections.Active.Peak),
			decimal(s.Connections.Waiting.Average, -1), strconv.Itoa(s.Connections.Waiting.Peak), limit, whole(s.Queries),
			whole(s.WaitMs),
		})
	}
	return w.WriteAll(rows)
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }
