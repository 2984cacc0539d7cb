package agentd

import (
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

// Archive says how the archive of the server is kept.
type Archive struct{ agent.Archive }

// archiveSocket is a flag of the agent and of its init.
func archiveSocket(f *pflag.FlagSet, into *string) {
	f.StringVar(into, "archive-socket", "", "path of the socket by which PostgreSQL hands over what it has written, for an archive "+
		"from which databases are had back as they were at any moment; PostgreSQL's user must reach it; empty: there is no archive")
}

func (a *Archive) flags(f *pflag.FlagSet) {
	archiveSocket(f, &a.Socket)
	f.DurationVar(&a.Plan.Window, "archive-window", archive.DefaultPlan.Window, "how far back a moment may be")
	f.DurationVar(&a.Plan.FullEvery, "archive-full-every", archive.DefaultPlan.FullEvery,
		"pause between two full copies of the server")
	f.DurationVar(&a.Plan.EachEvery, "archive-copy-every", archive.DefaultPlan.EachEvery,
		"pause between two copies, full or of what has changed: what was written in it is replayed at most to have a moment back")
	a.programs(f)
}

func (a *Archive) programs(f *pflag.FlagSet) {
	f.StringVar(&a.PgBackRest, "pgbackrest", "/usr/bin/pgbackrest", "path of pgbackrest")
	f.StringVar(&a.Postgres, "postgres-program", "/usr/lib/postgresql/16/bin/postgres",
		"path of the server's program, of its version, which replays what is had back")
}

// wanted is the archive of the settings; nil where none is kept.
func (a *Archive) wanted() *agent.Archive {
	if a.Socket == "" {
		return nil
	}
	return &a.Archive
}

// check refuses an archive that could never be kept.
func (a *Archive) check() error {
	if a.Socket == "" {
		return nil
	}
	for _, check := range []func() error{
		func() error { return checkProgram("pgbackrest", a.PgBackRest) },
		func() error { return checkProgram("postgres-program", a.Postgres) },
		func() error {
			return checkFolder("archive-socket", filepath.Dir(a.Socket), "make it, and let the agent's and PostgreSQL's users enter it")
		},
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// pushCommand is PostgreSQL's archive_command.
func pushCommand() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "archive-push FILE",
		Short: "have the agent store a file of WAL; PostgreSQL calls it as its archive_command",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := settings.Require(cmd, "socket"); err != nil {
				return err
			}
			return archive.Hand(socket, args[0])
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the agent's --archive-socket")
	return cmd
}
