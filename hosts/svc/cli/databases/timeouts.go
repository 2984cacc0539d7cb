package databases

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func databasesTimeouts(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "timeouts DATABASE", Short: "Show how long the sessions of a database may take", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteDatabase,
		RunE: a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
			t, err := c.QueryTimeouts.Get(ctx, of)
			if err != nil {
				return err
			}
			return showTimeouts(a, t)
		}),
	}
}

func databasesTimeoutsSet(a *app.App) *cobra.Command {
	var key app.KeyFlag
	var wait app.Waiting
	cmd := &cobra.Command{
		Use:  "timeouts-set DATABASE " + strings.Join(texts(querytimeout.Profiles), "|"),
		Args: cobra.ExactArgs(2), Short: "Choose how long the sessions of a database may take",
		Long: `Choose how long the sessions of a database may take, by default: what a session or a role sets for itself is
kept. Sessions begin anew after their transactions; no transaction is interrupted.

             one statement    waiting for a lock    idle in a transaction
` + policyTable(),
		ValidArgsFunction: a.CompleteDatabaseAnd(texts(querytimeout.Profiles)...),
		RunE: func(cmd *cobra.Command, args []string) error {
			profile, err := querytimeout.Parse(args[1])
			if err != nil {
				return app.Usage("%w", err)
			}
			opt, err := key.Use(a)
			if err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				t, err := c.QueryTimeouts.Set(ctx, of, wire.SetQueryTimeouts{Profile: profile}, opt)
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				goesOn := "the change goes on; see how it stands with: " + a.Onward("svc", "databases", "timeouts", args[0])
				if wait.Wait {
					t, err = app.UntilDone(ctx, t, timeoutsSettled, func(ctx context.Context) (wire.QueryTimeouts, error) {
						return c.QueryTimeouts.Get(ctx, of)
					})
					if err != nil {
						return app.Next(err, "%s", goesOn)
					}
				} else if !timeoutsSettled(t) {
					a.Note("%s", goesOn)
				}
				if err := showTimeouts(a, t); err != nil {
					return err
				}
				if t.Operation != nil && t.Operation.Status == operation.Failed {
					return fmt.Errorf("the change to %s was not made: the profile is %s", profile, t.EffectiveProfile)
				}
				return nil
			})(cmd, args)
		},
	}
	key.Add(cmd)
	wait.Add(cmd)
	return cmd
}

func policyTable() string {
	var text strings.Builder
	for _, p := range querytimeout.Profiles {
		l := querytimeout.Policy[p]
		fmt.Fprintf(&text, "  %-10s %-16s %-21s %s\n", p, terminal.Exactly(l.Statement), terminal.Exactly(l.Lock),
			terminal.Exactly(l.IdleInTransaction))
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// timeoutsSettled reports whether no change of the query timeouts is open.
func timeoutsSettled(t wire.QueryTimeouts) bool {
	return t.Operation == nil || t.Operation.Status.Final()
}

func showTimeouts(a *app.App, t wire.QueryTimeouts) error {
	fields := []app.Field{{"Profile", t.EffectiveProfile}}
	if t.DesiredProfile != t.EffectiveProfile {
		fields = append(fields, app.Field{"Wanted", t.DesiredProfile})
	}
	if now := t.Current; now != nil {
		fields = append(fields, app.Field{"One statement", limit(now.StatementTimeoutMs)},
			app.Field{"Waiting for a lock", limit(now.LockTimeoutMs)},
			app.Field{"Idle in a transaction", limit(now.IdleInTransactionTimeoutMs)})
	}
	if t.Current == nil {
		a.Note("the database server does not answer: what sessions begin with is not known")
	}
	if t.Operation != nil {
		fields = append(fields, app.Field{"Last change", string(t.Operation.Status) + ", " + string(t.Operation.ID)})
	}
	if t.RoleOverrides != nil {
		for _, o := range *t.RoleOverrides {
			fields = append(fields, app.Field{"Set for " + o.Role, o.Setting + " = " + o.Value})
		}
	}
	return a.ShowRecord(t, fields...)
}

// limit is a timeout as people read it.
func limit(milliseconds int64) string {
	if milliseconds == 0 {
		return "no limit"
	}
	return terminal.Exactly(time.Duration(milliseconds) * time.Millisecond)
}
