package admin

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	rules "github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) usage() *cobra.Command {
	var month, of string
	var asCSV bool
	cmd := &cobra.Command{
		Use: "usage", Short: "list what databases came to in a month, to bill by", Args: cobra.NoArgs,
		Long: "List what databases came to in a month (UTC), also those that are gone, by account: for how many hours there was a\n" +
			"database, connection hours, and the bytes of it and of its backups, times hours. What was not seen is not counted.",
	}
	f := cmd.Flags()
	f.StringVar(&month, "month", "", "the month, as 2026-11; the present one, without it")
	f.StringVar(&of, "account", "", "only this "+called[id.AccountID]())
	f.BoolVar(&asCSV, "csv", false, "print CSV, with whole numbers of bytes")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if asCSV && m.json {
			return errors.New("--csv prints no JSON: leave out one of them")
		}
		var filter ports.UsageFilter
		var err error
		if filter.Month, err = rules.ParseMonth(month, system.NewClock().Now()); err != nil {
			return err
		}
		return m.operate(cmd, func(ctx context.Context, o *operator.Operator) (err error) {
			if filter.AccountID, err = findAny[id.AccountID](ctx, o, "account", of); err != nil {
				return err
			}
			found, err := o.Usage(ctx, filter)
			if err != nil {
				return err
			}
			listed := tableOf(found, usageRow)
			if asCSV {
				return writeCSV(cmd, listed)
			}
			if !m.json && len(found) > 1 {
				listed = append(listed, sumRow(found))
			}
			return m.show(cmd, listed.only(
				"email", "database", "databaseHours", "connectionHours", "byteHours", "backupByteHours", "databaseId"))
		})
	}
	return cmd
}

func usageRow(e ports.UsageEntry) row {
	return append(row{
		{"month", rules.FormatMonth(e.Month)}, {"accountId", e.AccountID}, {"email", e.Email}, {"databaseId", e.DatabaseID},
		{"database", e.Name},
	}, sumsRow(e.Sums)...)
}

func sumsRow(s rules.Sums) row {
	return row{
		{"databaseHours", s.DatabaseHours()}, {"connectionHours", s.ConnectionHours()}, {"byteHours", terminal.Size(s.ByteHours)},
		{"backupByteHours", terminal.Size(s.BackupByteHours)},
	}
}

// sumRow is what all come to.
func sumRow(list []ports.UsageEntry) row {
	var sum rules.Sums
	for _, e := range list {
		sum = sum.Plus(e.Sums)
	}
	return append(row{{"email", "(all)"}}, sumsRow(sum)...)
}

// usageNames are the fields of usageRow, which a file without rows has too.
var usageNames = usageRow(ports.UsageEntry{})

// writeCSV writes the rows with the names that they have in JSON.
func writeCSV(cmd *cobra.Command, t table) error {
	w := csv.NewWriter(cmd.OutOrStdout())
	lines := [][]string{{}}
	for _, f := range usageNames {
		lines[0] = append(lines[0], f.Name)
	}
	for _, r := range t {
		var line []string
		for _, f := range r {
			line = append(line, cell(f.Value))
		}
		lines = append(lines, line)
	}
	return w.WriteAll(lines)
}

// cell is a value as a spreadsheet takes it, which takes a text that begins as a formula does for one: an address may.
func cell(value any) string {
	if size, is := value.(terminal.Size); is {
		return fmt.Sprintf("%d", size)
	}
	text := fmt.Sprint(value)
	if _, is := value.(string); is && strings.ContainsAny(text[:min(1, len(text))], "=+-@") {
		text = "'" + text
	}
	return text
}
