package databases

import (
	"context"
	"encoding/csv"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// figures are the flags of commands that show what was used.
type figures struct {
	by  string
	csv bool
}

func (o *figures) add(f *pflag.FlagSet, usual usage.Resolution) {
	f.StringVar(&o.by, "resolution", string(usual), "how long the stretches are: "+strings.Join(texts(usage.Resolutions), ", "))
	f.BoolVar(&o.csv, "csv", false, "print CSV, with whole numbers of bytes")
}

func (o *figures) check(a *app.App) error {
	if _, err := usage.ParseResolution(o.by); err != nil {
		return app.Usage("--resolution: %w", err)
	}
	if o.csv && a.WantsJSON() {
		return app.Usage("--csv prints no JSON: leave it out, or --json and --jq")
	}
	return nil
}

// stretch is a column with when one began, in UTC.
func (o *figures) stretch(at time.Time) app.Field {
	switch at = at.UTC(); usage.Resolution(o.by) {
	case usage.Monthly:
		return app.Field{"MONTH", usage.FormatMonth(at)}
	case usage.Daily:
		return app.Field{"DAY", at.Format(time.DateOnly)}
	case usage.Hourly:
	}
	return app.Field{"HOUR", at.Format("2006-01-02 15:04")}
}

func databasesUsage(a *app.App) *cobra.Command {
	var from, to string
	var o figures
	cmd := &cobra.Command{
		Use: "usage DATABASE", Short: "Show what a database used, by hours, days or months", Args: cobra.ExactArgs(1),
		Long: `Show what a database used, by hours, days or months: its size and that of its backups, connections that were in
use (on average, and the most at a time), clients that waited for one, queries, and how long clients waited. SEEN is
for how long the service saw the database; an hour in which it did not is missing. Times are in UTC.

A period has 31 days at most by hours, and else 400.`,
		Example: `  svc databases usage shop --from 2026-11-01 --to 2026-12-01 --csv > november.csv
  svc databases usage shop --resolution daily
  svc databases usage shop --jq .total`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(a); err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				u, err := c.Usage.Get(ctx, of, from, to, o.by)
				switch {
				case err != nil:
					return err
				case o.csv:
					return csv.NewWriter(a.Out).WriteAll(wire.SampleTable(u.Samples))
				case a.WantsJSON():
					return a.ShowJSON(u)
				}
				return o.show(a, u)
			})(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "a time, or a day in UTC, as 2026-11-01; without it, 30 days before the end, 365 by months")
	f.StringVar(&to, "to", "", "a time, or a day in UTC; now, without it")
	o.add(f, usage.Hourly)
	return cmd
}

func (o *figures) show(a *app.App, u wire.Usage) error {
	const none = "The service did not see the database in that time."
	err := app.ShowList(a, u.Samples, none, func(s wire.UsageSample) []app.Field {
		return []app.Field{
			o.stretch(s.At), {"SIZE", terminal.Size(s.SizeBytes)},
			{"BACKUPS", terminal.Size(s.BackupBytes)}, {"ACTIVE", decimal(s.Connections.Active.Average, 1)},
			{"PEAK", s.Connections.Active.Peak}, {"WAITING", decimal(s.Connections.Waiting.Average, 1)}, {"QUERIES", s.Queries},
			{"WAIT", terminal.Exactly(time.Duration(s.WaitMs) * time.Millisecond)},
			{"SEEN", terminal.Exactly(time.Duration(s.SeenSeconds) * time.Second)},
		}
	})
	if err == nil && len(u.Samples) > 0 {
		noteTotal(a, u.Total)
	}
	return err
}

func noteTotal(a *app.App, t wire.UsageTotal) {
	a.Note("in all: %s database hours, %s connection hours, %s hours, %s hours of backups",
		decimal(t.DatabaseHours, 2), decimal(t.ConnectionHours, 2), terminal.Size(t.ByteHours), terminal.Size(t.BackupByteHours))
}

func decimal(v float64, places int) string { return strconv.FormatFloat(v, 'f', places, 64) }

// Usage makes the command "svc usage".
func Usage(a *app.App) *cobra.Command {
	var month string
	var o figures
	cmd := &cobra.Command{
		Use: "usage", Short: "Show what the databases of the account came to in a month", Args: cobra.NoArgs,
		Long: `Show what the databases of the account came to in a month, also those that are gone: for how many hours there was a
database, connection hours, and the bytes of it and of its backups, times hours. What was not seen is not counted.
Months and days are in UTC.`,
		Example: `  svc usage --month 2026-11 --resolution daily --csv > november.csv`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(a); err != nil {
				return err
			}
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				list, err := app.Collected(c.Usage.List(month, o.by).All(ctx))
				switch {
				case err != nil:
					return err
				case o.csv:
					return csv.NewWriter(a.Out).WriteAll(wire.PartTable(list))
				case a.WantsJSON():
					return app.ShowList(a, list, "", nil)
				}
				return o.showBill(a, list)
			})
		},
	}
	cmd.Flags().StringVar(&month, "month", "", "the month, as 2026-11; the present one, without it")
	o.add(cmd.Flags(), usage.Monthly)
	return cmd
}

func (o *figures) showBill(a *app.App, list []wire.DatabaseUsage) error {
	type part struct {
		wire.UsagePart
		name string
	}
	var parts []part
	var total wire.UsageTotal
	for _, d := range list {
		for _, p := range d.Parts {
			parts = append(parts, part{p, d.DatabaseName})
		}
		total.DatabaseHours += d.Total.DatabaseHours
		total.ConnectionHours += d.Total.ConnectionHours
		total.ByteHours += d.Total.ByteHours
		total.BackupByteHours += d.Total.BackupByteHours
	}
	err := app.ShowList(a, parts, "The service saw no database in that month.", func(p part) []app.Field {
		return []app.Field{
			o.stretch(p.At), {"DATABASE", p.name}, {"HOURS", decimal(p.DatabaseHours, 2)},
			{"CONNECTION HOURS", decimal(p.ConnectionHours, 2)}, {"SIZE HOURS", terminal.Size(p.ByteHours)},
			{"BACKUP HOURS", terminal.Size(p.BackupByteHours)},
		}
	})
	if err == nil && len(list) > 0 {
		noteTotal(a, total)
	}
	return err
}
