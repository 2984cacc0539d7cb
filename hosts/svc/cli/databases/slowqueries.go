package databases

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slowquery"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func databasesSlowQueries(a *app.App) *cobra.Command {
	var order string
	cmd := &cobra.Command{
		Use: "slow-queries DATABASE", Short: "Show what takes the time of a database", Args: cobra.ExactArgs(1),
		Long: `Show the statements that the logins of a database have run, and how long they took: those that took most time in all,
each time (--order mean), or that ran most often (--order calls). Constants and comments are left out of the texts.`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := slowquery.ParseOrder(order); err != nil {
				return app.Usage("--order: %w", err)
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				slow, err := c.SlowQueries.Get(ctx, of, order)
				if err != nil || a.WantsJSON() {
					return a.Done(slow, err, "")
				}
				a.Note("counted since %s", slow.Since.UTC().Format(time.RFC3339))
				if slow.Evicted {
					a.Note("statements that ran seldom may be missing: the server had no room for all of them")
				}
				return app.ShowList(a, slow.Queries, "No statements.", func(q wire.SlowQuery) []app.Field {
					return []app.Field{
						{"TOTAL", took(q.TotalMs)}, {"MEAN", took(q.MeanMs)}, {"LONGEST", took(q.MaxMs)}, {"CALLS", q.Calls},
						{"ROWS", q.Rows}, {"LOGIN", q.Username}, {"QUERY", q.Query},
					}
				})
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&order, "order", string(slowquery.ByTotal),
		"what comes first: "+strings.Join(texts(slowquery.Orders), ", "))
	return cmd
}

// mostShown is thirty years, so that whatever an API says is a duration.
const mostShown = 1e12

// took is a time in milliseconds as people read it: three digits of it are enough.
func took(milliseconds float64) string {
	d := time.Duration(min(milliseconds, mostShown) * float64(time.Millisecond))
	for unit := time.Microsecond; ; unit *= 10 {
		if d < 1000*unit {
			return terminal.Exactly(d.Round(unit))
		}
	}
}
