// Package backups has the commands of svc about backups and their files.
package backups

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// Command makes the command "svc backups".
func Command(a *app.App) *cobra.Command {
	return app.Group("backups", "Make, download and restore backups",
		backupsList(a),
		backupsCreate(a),
		backupsDownload(a),
		backupsDelete(a),
		backupsRestore(a),
		backupsUpload(a),
		backupsCertificate(a),
	)
}

func backupsList(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "list DATABASE", Short: "List the backups of a database, newest first", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteDatabase,
		RunE: a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
			const none = `No backups. Make one with "svc backups create DATABASE".`
			return app.ShowAll(a, c.Backups.List(of).All(ctx), none, func(b wire.Backup) []app.Field {
				return []app.Field{
					{"FILENAME", b.Filename}, {"CREATED", b.CreatedAt}, {"SIZE", terminal.Size(b.SizeBytes)}, {"VERIFIED", verified(b)},
					{"KIND", b.Trigger}, {"EXPIRES", b.ExpiresAt},
				}
			})
		}),
	}
}

func verified(b wire.Backup) any {
	if b.DamagedAt != nil {
		return "damaged"
	}
	return b.VerifiedAt
}

func backupsCreate(a *app.App) *cobra.Command {
	var wait app.Waiting
	cmd := &cobra.Command{
		Use: "create DATABASE", Short: "Back a database up", Args: cobra.ExactArgs(1),
		Long: `Back a database up. The backup is restored in isolation and compared with the database before its operation ends.

An answer that is lost is not asked for again: "svc operations list DATABASE" shows whether the backup has begun.`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				begun, err := c.Backups.Start(ctx, of)
				if err != nil {
					return a.MayHaveBegun(err, args[0])
				}
				return wait.End(ctx, a, c, begun)
			})(cmd, args)
		},
	}
	wait.Add(cmd)
	return cmd
}

func backupsDelete(a *app.App) *cobra.Command {
	return a.Confirmed(&cobra.Command{
		Use: "delete DATABASE BACKUP", Short: "Delete a backup for good", Args: cobra.ExactArgs(2),
		ValidArgsFunction: completeBackup(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := backup.ParseFilename(args[1])
			if err != nil {
				return app.Usage("BACKUP: %w", err)
			}
			what := "This deletes the backup " + args[1] + " of " + args[0] + ". Nobody can bring it back."
			if err := a.Ask(args[1], what); err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				if err := c.Backups.Delete(ctx, of, file); err != nil {
					return err
				}
				return a.Say(map[string]backup.Filename{"filename": file}, "%s of %s was deleted.", file, args[0])
			})(cmd, args)
		},
	})
}

// latest stands for the newest verified backup.
const latest = "latest"

// checkBackup says what is wrong with the name of a backup, before anything is sent.
func checkBackup(name string) error {
	if name == latest {
		return nil
	}
	if _, err := backup.ParseFilename(name); err != nil {
		return app.Usage("BACKUP: %w, or %s", err, latest)
	}
	return nil
}

var errNoneVerified = errors.New("the database has no verified backup")

// backupNamed finds a backup of a database by its file name, or the latest.
func backupNamed(ctx context.Context, c *apiclient.Client, of id.DatabaseID, name string) (wire.Backup, error) {
	for b, err := range c.Backups.List(of).All(ctx) {
		if err != nil {
			return wire.Backup{}, err
		}
		if string(b.Filename) == name || name == latest && b.VerifiedAt != nil {
			return b, nil
		}
	}
	if name == latest {
		return wire.Backup{}, app.Next(errNoneVerified, "%s", app.Advice[fault.BackupNotFound])
	}
	return wire.Backup{}, app.NotFound{What: "backup", Name: name}
}

// completeBackup offers the names of databases, then those of the database's backups, and before them other names.
func completeBackup(a *app.App, others ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return a.CompleteDatabase(cmd, args, typed)
		}
		return a.Names(cmd, func(ctx context.Context, c *apiclient.Client) ([]string, error) {
			of, err := a.DatabaseNamed(ctx, args[0])
			if err != nil {
				return nil, err
			}
			names := slices.Clone(others)
			for b, err := range c.Backups.List(of).All(ctx) {
				if err != nil {
					return nil, err
				}
				names = append(names, string(b.Filename)+"\t"+terminal.Bytes(b.SizeBytes)+", "+string(b.Trigger))
			}
			return names, nil
		})
	}
}
