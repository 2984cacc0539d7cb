package databases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func databasesClone(a *app.App) *cobra.Command {
	var displayName, file, at string
	var key app.KeyFlag
	var wait app.Waiting
	cmd := &cobra.Command{
		Use: "clone DATABASE NAME", Short: "Make a database that begins with what another one holds", Args: cobra.ExactArgs(2),
		Long: `Make a database that begins with what another one holds, or held when one of its backups was made or at a moment, and
print the password of its owner's login. It can be used when the operation has succeeded. Additional roles, members and the
allowlist are not copied: any address may connect to the new database.

A moment needs its offset from UTC. "svc databases window" shows which there are; a deleted database has some too.

The operator enables this for single databases.`,
		Example: `  svc databases clone shop shop-copy --wait
  svc databases clone shop shop-in-march --backup 20260301_113000.sql.gz
  svc databases clone shop shop-then --at '2026-03-01 12:30:00+01' --wait`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := cloneOf(args[1], app.First(displayName, args[1]), file)
			if err != nil {
				return app.Usage("%w", err)
			}
			find := func(ctx context.Context, _ *apiclient.Client) (id.DatabaseID, error) {
				return a.DatabaseNamed(ctx, args[0])
			}
			if cmd.Flags().Changed("at") {
				if file != "" {
					return app.Usage("take one of --backup and --at")
				}
				moment, err := app.Moment("--at", at)
				if err != nil {
					return err
				}
				b.PointInTime = new(recovery.Text(*moment))
				find = func(ctx context.Context, c *apiclient.Client) (id.DatabaseID, error) {
					return everNamed(ctx, a, c, args[0])
				}
			}
			opt, err := key.Use(a)
			if err != nil {
				return err
			}
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				of, err := find(ctx, c)
				if err != nil {
					return err
				}
				begun, err := c.Databases.Clone(ctx, of, b, opt)
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				return endClone(ctx, a, c, begun, wait)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "backup", "", "the backup to begin with; without it, the database as it is now")
	f.StringVar(&at, "at", "", "begin with what the database held then, as '2026-03-01 12:30:00+01'")
	f.StringVar(&displayName, "display-name", "", "1-64 characters; the name, without it")
	key.Add(cmd)
	wait.Add(cmd)
	return cmd
}

// cloneOf asks for a clone; file is a backup, or empty.
func cloneOf(name, displayName, file string) (b wire.CloneDatabase, err error) {
	if err := database.ValidateChosenName(name); err != nil {
		return b, err
	}
	if displayName, err = database.ValidateDisplayName(displayName); err != nil {
		return b, err
	}
	b = wire.CloneDatabase{Name: name, DisplayName: displayName}
	if file != "" {
		filename, err := backup.ParseFilename(file)
		if err != nil {
			return b, err
		}
		b.Filename = &filename
	}
	return b, nil
}

// endClone shows a clone that has begun. Its password is printed before it is waited for.
func endClone(ctx context.Context, a *app.App, c *apiclient.Client, begun wire.ClonedDatabase, wait app.Waiting) (err error) {
	if !a.WantsJSON() {
		if err := a.ShowRecord(nil, createdFields(begun.Database)...); err != nil {
			return err
		}
	}
	switch o := begun.Operation; {
	case wait.Wait:
		if begun.Operation, err = a.Follow(ctx, c, o); err != nil {
			if a.WantsJSON() {
				err = errors.Join(err, a.ShowJSON(begun)) // It has the password, which is shown once.
			}
			return err
		}
	case !o.Status.Final():
		a.Note("%s\nfollow it with: %s", begun.Message, a.Onward("svc", "operations", "wait", string(o.ID)))
	}
	if a.WantsJSON() {
		if err := a.ShowJSON(begun); err != nil {
			return err
		}
	}
	switch o := begun.Operation; {
	case o.Status == operation.Succeeded:
		return sayCloned(a, o)
	case o.Status.Final():
		return app.FailedOperation{Operation: o}
	}
	return nil
}

// sayCloned says that a clone can be used, and what it has not that its source has.
func sayCloned(a *app.App, o wire.Operation) error {
	var made struct {
		Name  string   `json:"name"`
		Notes []string `json:"notes"`
	}
	if o.Result != nil {
		if err := json.Unmarshal(*o.Result, &made); err != nil {
			return fmt.Errorf("the operation's result: %w", err)
		}
	}
	a.Note("%s", strings.Join(append([]string{made.Name + " can be used."}, made.Notes...), "\n"))
	return nil
}
