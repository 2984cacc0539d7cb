// Package databases has the commands of svc about databases, and what is set for them.
package databases

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// Command makes the command "svc databases".
func Command(a *app.App) *cobra.Command {
	return app.Group("databases", "Make, see, stop and delete databases",
		databasesList(a),
		databasesCreate(a),
		databasesGet(a),
		databasesUsage(a),
		databasesEnvironment(a),
		databasesBackupPolicy(a),
		databasesConfirmUpgrade(a),
		databasesStart(a),
		databasesStop(a),
		databasesRestart(a),
		databasesDelete(a),
		databasesDeleted(a),
		databasesRecover(a),
		databasesClone(a),
		databasesWindow(a),
		databasesCertificate(a),
		databasesRewind(a),
		databasesRescue(a),
		databasesDiff(a),
		databasesBisect(a),
		databasesTimeouts(a),
		databasesTimeoutsSet(a),
		databasesSlowQueries(a),
		extensions(a),
		allowlist(a),
	)
}

func databasesList(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the databases that the key can see", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				const none = `No databases. Make one with "svc databases create NAME".`
				return app.ShowAll(a, c.Databases.List().All(ctx), none, func(d wire.Database) []app.Field {
					return []app.Field{
						{"NAME", d.Name}, {"STATUS", d.Status}, {"ENVIRONMENT", d.Environment}, {"SIZE", terminal.Size(d.SizeBytes)},
						{"STORAGE", exceptional(d.Storage.Status)}, {"BACKUPS", d.ScheduledBackup}, {"CREATED", d.CreatedAt},
					}
				})
			})
		},
	}
}

// exceptional is the storage of a database that is full or closed; nil for one that is well.
func exceptional(s database.StorageStatus) any {
	if s == database.StorageOK {
		return nil
	}
	return string(s)
}

func databasesCreate(a *app.App) *cobra.Command {
	var b wire.CreateDatabase
	var displayName, model, environment, schedule string
	var postgres int
	var key app.KeyFlag
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a database, and print its password once", Args: cobra.ExactArgs(1),
		Long: `Make a database, and print the password of its owner's login and the connection string.

Repeated with the same idempotency key, it prints those of the database that was made, as long as the password is the same.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			b.Name, b.DisplayName = args[0], app.First(displayName, args[0])
			if err := database.ValidateChosenName(b.Name); err != nil {
				return app.Usage("%w", err)
			}
			if b.RoleModel, err = chosen(cmd, "role-model", model, database.ParseRoleModel); err != nil {
				return err
			}
			if b.Environment, err = chosen(cmd, "environment", environment, database.ParseEnvironment); err != nil {
				return err
			}
			if b.ScheduledBackup, err = chosen(cmd, "scheduled-backup", schedule, database.ParseSchedule); err != nil {
				return err
			}
			if cmd.Flags().Changed("postgres-version") {
				if err := pgversion.Check(postgres); err != nil {
					return app.Usage("--postgres-version: %w", err)
				}
				b.PostgresVersion = &postgres
			}
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				opt, err := key.Use(a)
				if err != nil {
					return err
				}
				made, err := c.Databases.Create(ctx, b, opt)
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				return a.ShowRecord(made, createdFields(made)...)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&displayName, "display-name", "", "1-64 characters; the name, without it")
	f.StringVar(&model, "role-model", "", "managed (logins owner, runtime and readonly) or single_login; managed, without it")
	f.StringVar(&environment, "environment", "", "production, staging, development or other")
	f.StringVar(&schedule, "scheduled-backup", "", "daily or none; the service's default, without it")
	f.IntVar(&postgres, "postgres-version", 0, "16, 17 or 18; the account's default, usually 16, without it")
	key.Add(cmd)
	return cmd
}

// chosen is the value of a flag with a few values; nil where it was not given.
func chosen[T any](cmd *cobra.Command, flag, text string, parse func(string) (T, error)) (*T, error) {
	if !cmd.Flags().Changed(flag) {
		return nil, nil
	}
	value, err := parse(text)
	if err != nil {
		return nil, app.Usage("--%s: %w", flag, err)
	}
	return &value, nil
}

func databaseFields(d wire.Database) []app.Field {
	fields := []app.Field{
		{"Name", d.Name},
		{"Display name", d.DisplayName},
		{"ID", d.ID},
		{"Status", d.Status},
		{"Environment", d.Environment},
		{"Host", d.Host},
		{"Port", d.Port},
		{"Database", d.Database},
		{"Username", d.Username},
		{"Size", terminal.Size(d.SizeBytes)},
		{"Storage", exceptional(d.Storage.Status)},
		{"PostgreSQL", d.PostgresVersion},
		{"Daily backups", d.ScheduledBackup == database.Daily},
		{"Created", d.CreatedAt},
	}
	if d.UpgradedFrom != 0 {
		fields = append(fields, app.Field{"Upgraded from", d.UpgradedFrom})
	}
	return fields
}

// createdFields has the password, too.
func createdFields(d wire.CreatedDatabase) []app.Field {
	return append(databaseFields(d.Database),
		app.Field{"Password (shown once)", d.Password}, app.Field{"Connection string", d.ConnectionString})
}

func databasesGet(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "get DATABASE", Short: "Show a database", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteDatabase,
		RunE: a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
			d, err := c.Databases.Get(ctx, of)
			if err != nil {
				return err
			}
			return a.ShowRecord(d, databaseFields(d)...)
		}),
	}
}

func databasesEnvironment(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "environment DATABASE production|staging|development|other|none", Short: "Label a database with its environment",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.CompleteDatabaseAnd("production", "staging", "development", "other", "none"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var b wire.SetEnvironment
			if args[1] != "none" {
				environment, err := database.ParseEnvironment(args[1])
				if err != nil { // Its text has the API's null instead of none.
					return app.Usage("ENVIRONMENT must be production, staging, development, other or none, and %q is none of them", args[1])
				}
				b.Environment = &environment
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				changed, err := c.Databases.SetEnvironment(ctx, of, b)
				return a.Done(changed, err, "The environment of %s is %s.", args[0], args[1])
			})(cmd, args)
		},
	}
}

func databasesBackupPolicy(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "backup-policy DATABASE daily|none", Short: "Choose whether the service makes daily backups", Args: cobra.ExactArgs(2),
		ValidArgsFunction: a.CompleteDatabaseAnd("daily", "none"),
		RunE: func(cmd *cobra.Command, args []string) error {
			schedule, err := database.ParseSchedule(args[1])
			if err != nil {
				return app.Usage("%q: %w", args[1], err)
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				changed, err := c.Backups.SetPolicy(ctx, of, wire.SetBackupPolicy{ScheduledBackup: schedule})
				return a.Done(changed, err, "Scheduled backups of %s: %s.", args[0], schedule)
			})(cmd, args)
		},
	}
}

func databasesStart(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "start DATABASE", Short: "Let the logins of a stopped database in again", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			return lifecycle(a, cmd, args, database.Start, "is started")
		},
	}
}

func databasesStop(a *app.App) *cobra.Command {
	return disconnecting(a, "stop", "Close all connections of a database, and let no login in", database.Stop, "is stopped")
}

func databasesRestart(a *app.App) *cobra.Command {
	return disconnecting(a, "restart", "Close all connections of a database", database.Restart, "was restarted")
}

// disconnecting makes a command that ends the sessions of a database's users, and asks before.
func disconnecting(a *app.App, use, short string, action database.Event, done string) *cobra.Command {
	return a.Confirmed(&cobra.Command{
		Use: use + " DATABASE", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "This closes all connections of " + args[0] + ", and rolls their open transactions back."
			if err := a.Ask(args[0], what); err != nil {
				return err
			}
			return lifecycle(a, cmd, args, action, done)
		},
	})
}

func lifecycle(a *app.App, cmd *cobra.Command, args []string, action database.Event, done string) error {
	return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
		changed, err := c.Databases.SetLifecycle(ctx, of, wire.SetLifecycle{Action: action})
		if err != nil && action == database.Restart {
			return a.MayBe(err, "once more, it closes all connections again: "+app.Again(cmd, args))
		}
		if err != nil {
			return a.MayBeDone(err, app.Again(cmd, args))
		}
		return a.Say(changed, "%s %s.", args[0], done)
	})(cmd, args)
}
