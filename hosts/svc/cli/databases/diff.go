package databases

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func databasesDiff(a *app.App) *cobra.Command {
	var at []string
	var key app.KeyFlag
	cmd := &cobra.Command{
		Use: "diff DATABASE", Short: "Show how what a database held at two moments differs", Args: cobra.ExactArgs(1),
		Long: `Show which tables came and went between two moments, which columns of others changed, and where the number of rows
differs. Tables with the same columns and as many rows are only counted, whatever is in them. ~ is a number that was estimated, as
there was no time to count.

It waits until the moments are compared, and changes nothing. The operator enables this for single databases, as clones.`,
		Example:           `  svc databases diff shop --at '2026-03-01 12:30:00+01' --at '2026-03-01 14:30:00+01'`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(at) != 2 {
				return app.Usage("--at: give it twice, for the two moments")
			}
			from, err := app.Moment("--at", at[0])
			if err != nil {
				return err
			}
			to, err := app.Moment("--at", at[1])
			if err != nil {
				return err
			}
			if to.Before(*from) {
				from, to = to, from
			}
			opt, err := key.Use(a)
			if err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				b := wire.CompareMoments{From: recovery.Text(*from), To: recovery.Text(*to)}
				begun, err := c.Recovery.CompareMoments(ctx, of, b, opt)
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				return ended(ctx, a, c, begun.Operation, showComparison)
			})(cmd, args)
		},
	}
	cmd.Flags().StringArrayVar(&at, "at", nil, "a moment, as '2026-03-01 12:30:00+01'; given twice")
	key.Add(cmd)
	return cmd
}

func showComparison(a *app.App, c recovery.Comparison) error {
	err := app.ShowList(a, c.Tables, "Nothing differs.", func(d recovery.Difference) []app.Field {
		return []app.Field{
			{"TABLE", d.Table}, {"CHANGE", d.Change}, {"ROWS BEFORE", rowsOf(d.Before)}, {"AFTER", rowsOf(d.After)},
			{"COLUMNS", columnsOf(d)},
		}
	})
	if err != nil {
		return err
	}
	note := fmt.Sprintf("%d tables have the same columns and as many rows", c.Unchanged)
	if c.LeftOut > 0 {
		note += fmt.Sprintf("; %d others differ, too, and are left out", c.LeftOut)
	}
	a.Note("%s", note)
	return nil
}

func rowsOf(c *recovery.Count) any {
	switch {
	case c == nil:
		return nil
	case c.Estimated:
		return "~" + strconv.FormatInt(c.Rows, 10)
	}
	return c.Rows
}

// columnsOf writes what has become of columns: + one that came, - one that went, and the types of one that has another.
func columnsOf(d recovery.Difference) any {
	var list []string
	for _, c := range d.Columns {
		switch {
		case c.Before == nil:
			list = append(list, "+"+c.Name+" "+*c.After)
		case c.After == nil:
			list = append(list, "-"+c.Name+" "+*c.Before)
		default:
			list = append(list, c.Name+" "+*c.Before+" -> "+*c.After)
		}
	}
	if d.LeftOut > 0 {
		list = append(list, fmt.Sprintf("and %d more", d.LeftOut))
	}
	if list == nil {
		return nil
	}
	return strings.Join(list, ", ")
}
