package databases

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func databasesRescue(a *app.App) *cobra.Command {
	var at string
	var tables []string
	var key app.KeyFlag
	cmd := &cobra.Command{
		Use: "rescue DATABASE", Short: "Bring tables back as they were, beside those of now", Args: cobra.ExactArgs(1),
		Long: `Bring tables back as they were at a moment, into a schema of their own in the database as it is: rescue_ with the date
and the time in UTC. Nothing else of the database changes, and nobody is disconnected. From there the owner copies by SQL what is
missing, and then drops the schema.

They are columns and rows only, without indexes, constraints, defaults and triggers. Sequences and large objects are left out. A
column whose type the database does not have any more as it was is text. All tables come, or none.

It waits until the tables are there. The operator enables this for single databases, as clones.`,
		Example: `  svc databases rescue shop --at '2026-03-01 12:30:00+01' --table orders
  svc databases rescue shop --at '2026-03-01 12:30:00+01' --table orders --table 'billing."Invoice"'`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			moment, err := app.Moment("--at", at)
			if err != nil {
				return err
			}
			if _, err := recovery.Tables(tables); err != nil {
				return app.Usage("--table: %w", err)
			}
			opt, err := key.Use(a)
			if err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				begun, err := c.Recovery.RescueTables(ctx, of, wire.RescueTables{PointInTime: recovery.Text(*moment), Tables: tables}, opt)
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				return ended(ctx, a, c, begun.Operation, showRescued)
			})(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&at, "at", "", "what the tables held then, as '2026-03-01 12:30:00+01'")
	f.StringArrayVar(&tables, "table", nil, "a table, as table or schema.table, named as in SQL; may be repeated")
	key.Add(cmd)
	return cmd
}

// ended follows an operation until it has ended, and shows its result.
func ended[R any](
	ctx context.Context, a *app.App, c *apiclient.Client, o wire.Operation, show func(*app.App, R) error,
) error {
	o, err := a.Follow(ctx, c, o)
	switch {
	case err != nil:
		return err
	case o.Status != operation.Succeeded || a.WantsJSON() || o.Result == nil:
		return a.ShowEnded(o)
	}
	var result R
	if err := json.Unmarshal(*o.Result, &result); err != nil {
		return fmt.Errorf("the operation's result: %w", err)
	}
	return show(a, result)
}

func showRescued(a *app.App, r recovery.RescueResult) error {
	err := app.ShowList(a, r.Tables, "", func(t recovery.Rescued) []app.Field {
		return []app.Field{{"TABLE", t.Of}, {"NOW IN", r.Schema + "." + quoted(t.Name)}, {"ROWS", t.Rows}}
	})
	if err != nil {
		return err
	}
	for _, note := range r.Notes {
		a.Note("%s", note)
	}
	a.Note("when nothing of it is needed any more: DROP SCHEMA %s CASCADE", r.Schema)
	return nil
}

// quoted is a name as SQL takes it.
func quoted(name string) string {
	if regexp.MustCompile(`^[a-z_][a-z0-9_]*$`).MatchString(name) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
