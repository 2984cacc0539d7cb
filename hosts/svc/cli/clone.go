package cli

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
)

func databasesClone(a *app) *cobra.Command {
	var displayName, file string
	var key keyFlag
	var wait waiting
	cmd := &cobra.Command{
		Use: "clone DATABASE NAME", Short: "Make a database that begins with what another one holds", Args: cobra.ExactArgs(2),
		Long: `Make a database that begins with what another one holds, or held when one of its backups was made, and print the
password of its owner's login. It can be used when the operation has succeeded. Additional roles, members and the allowlist
are not copied: any address may connect to the new database.

The operator enables this for single databases.`,
		Example: `  svc databases clone shop shop-copy --wait
  svc databases clone shop shop-in-march --backup 20260301_113000.sql.gz`,
		ValidArgsFunction: a.completeDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := cloneOf(args[1], first(displayName, args[1]), file)
			if err != nil {
				return usageError{err}
			}
			opt, err := key.use(a)
			if err != nil {
				return err
			}
			return a.onDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				begun, err := c.Databases.Clone(ctx, of, b, opt)
				if err != nil {
					return a.mayBeDone(err, again(cmd, args))
				}
				return endClone(ctx, a, c, begun, wait)
			})(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "backup", "", "the backup to begin with; without it, the database as it is now")
	f.StringVar(&displayName, "display-name", "", "1-64 characters; the name, without it")
	key.add(cmd)
	wait.add(cmd)
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
func endClone(ctx context.Context, a *app, c *apiclient.Client, begun wire.ClonedDatabase, wait waiting) (err error) {
	if !a.wantsJSON() {
		if err := a.showRecord(nil, createdFields(begun.Database)...); err != nil {
			return err
		}
	}
	switch o := begun.Operation; {
	case wait.wait:
		if begun.Operation, err = a.follow(ctx, c, o); err != nil {
			if a.wantsJSON() {
				err = errors.Join(err, a.showJSON(begun)) // It has the password, which is shown once.
			}
			return err
		}
	case !o.Status.Final():
		a.note("%s\nfollow it with: %s", begun.Message, a.onward("svc", "operations", "wait", string(o.ID)))
	}
	if a.wantsJSON() {
		if err := a.showJSON(begun); err != nil {
			return err
		}
	}
	switch o := begun.Operation; {
	case o.Status == operation.Succeeded:
		return sayCloned(a, o)
	case o.Status.Final():
		return failedOperation{o}
	}
	return nil
}

// sayCloned says that a clone can be used, and what it has not that its source has.
func sayCloned(a *app, o wire.Operation) error {
	var made struct {
		Name  string   `json:"name"`
		Notes []string `json:"notes"`
	}
	if o.Result != nil {
		if err := json.Unmarshal(*o.Result, &made); err != nil {
			return fmt.Errorf("the operation's result: %w", err)
		}
	}
	a.note("%s", strings.Join(append([]string{made.Name + " can be used."}, made.Notes...), "\n"))
	return nil
}
