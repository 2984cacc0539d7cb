package databases

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func databasesBisect(a *app.App) *cobra.Command {
	var query, until, from, to string
	var key app.KeyFlag
	cmd := &cobra.Command{
		Use: "bisect DATABASE", Short: "Find the second at which the answer of a query changed", Args: cobra.ExactArgs(1),
		Long: `Find the second from which on the answer of a query fulfils a comparison: one of < <= = <> >= > and a number, or a text
in single quotes. The query is one SELECT that gives one value. It is asked at one moment after another, in copies of the database
as it was, with the rights of its owner, for at most a minute each; it changes nothing. NULL fulfils no comparison,
and neither does what asks for a table or a column that is not there.

Without --from and --to it is looked for in all that can be had back: the nearer they are, the sooner it is found. The change that
is found is one of several where the answer went to and fro.

It waits until the second is found. The operator enables this for single databases, as clones.`,
		Example: `  svc databases bisect shop --query 'SELECT count(*) FROM orders' --until '< 1000'
  svc databases bisect shop --query "SELECT state FROM orders WHERE id = 7" --until "= 'gone'" --from '2026-03-01 12:00:00+01'`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			b := wire.FindMoment{Query: query, Until: until}
			for _, one := range []struct {
				flag, text string
				at         **string
			}{{"from", from, &b.From}, {"to", to, &b.To}} {
				if cmd.Flags().Changed(one.flag) {
					at, err := app.Moment("--"+one.flag, one.text)
					if err != nil {
						return err
					}
					*one.at = new(recovery.Text(*at))
				}
			}
			if err := (recovery.Find{Query: query, Until: until}).Check(); err != nil {
				return app.Usage("%w", err)
			}
			opt, err := key.Use(a)
			if err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				begun, err := c.Recovery.FindMoment(ctx, of, b, opt)
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				return ended(ctx, a, c, begun.Operation, showFound)
			})(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&query, "query", "", "one SELECT that gives one value")
	f.StringVar(&until, "until", "", "what its answer is compared with, as '< 1000'")
	f.StringVar(&from, "from", "", "look from then on, as '2026-03-01 12:30:00+01'; the beginning of the window, without it")
	f.StringVar(&to, "to", "", "look up to then; now, without it")
	key.Add(cmd)
	return cmd
}

func showFound(a *app.App, r recovery.SearchResult) error {
	var fields []app.Field
	for _, end := range []struct {
		name string
		at   any
		look *recovery.Sight
	}{{"Not yet", r.NotYet, r.LookAt(r.NotYet)}, {"Since", r.Since, r.LookAt(r.Since)}} {
		if end.look != nil {
			fields = append(fields, app.Field{Name: end.name, Value: end.at}, app.Field{Name: "Answer", Value: answerOf(*end.look)})
		}
	}
	if err := a.ShowRecord(r, append(fields, app.Field{Name: "Looks", Value: len(r.Looks)})...); err != nil {
		return err
	}
	switch r.Outcome {
	case recovery.Always:
		a.Note("it was so at the beginning already: look from an earlier moment")
	case recovery.Never:
		a.Note("it was not so at the end")
	case recovery.Changed:
	}
	return nil
}

func answerOf(s recovery.Sight) string {
	switch {
	case s.Missing != "":
		return "none: " + s.Missing
	case s.Text == nil:
		return "NULL"
	}
	return *s.Text
}
