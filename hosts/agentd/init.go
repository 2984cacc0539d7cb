package agentd

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

// initCommand is "pgherd agent init": the one step that needs a superuser of PostgreSQL.
func initCommand() *cobra.Command {
	var o setup.Options
	var owner, peer, dump, bouncer, archiver, plan, socket string
	var archived setup.Archive
	cmd := &cobra.Command{
		Use:   "init",
		Short: "prepare a PostgreSQL server as a superuser; needed once, and safe to repeat",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Require(cmd, "server-url", "credentials-file"); err != nil {
				return err
			}
			var err error
			if o.CredentialsOwner, err = fileOwner("credentials-owner", owner); err != nil {
				return err
			}
			if o.Peer, err = fileOwner("peer-user", peer); err != nil {
				return err
			}
			if err := o.Versions.CheckVersions(); err != nil {
				return err
			}
			if err := o.Languages.CheckLanguages(); err != nil {
				return err
			}
			if o.LargestPlan, err = account.ParsePlan(plan); err != nil {
				return fmt.Errorf("--largest-plan must be free, pro or business")
			}
			o.Programs = []string{dump, bouncer}
			if socket != "" {
				program, err := os.Executable()
				if err != nil {
					return err
				}
				archived.Command = setup.ArchiveCommand(program, socket)
				o.Archive, o.Programs = &archived, append(o.Programs, archiver)
			}
			return prepare(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.DSN, "server-url", "",
		"superuser's connection to the database postgres; prefer PGHERD_SERVER_URL, since it may hold a password")
	f.StringVar(&o.CredentialsFile, "credentials-file", "", "where to write the generated passwords; the file gets mode 0600")
	f.BoolVar(&o.NewPasswords, "new-passwords", false,
		"write new passwords although the server has others; all customers are cut off until agent and PgBouncer have restarted")
	acceptVersions(f, &o.Versions.Accept)
	acceptLanguages(f, &o.Languages.Accept)
	f.StringVar(&dump, "pg-dump", "pg_dump", "name or path of pg_dump, whose version is checked too; where root calls, "+
		"all programs are asked as --credentials-owner, or --peer-user, or nobody")
	f.StringVar(&bouncer, "pgbouncer", "pgbouncer", "name or path of PgBouncer, whose version is checked too")
	f.StringVar(&archiver, "pgbackrest", "pgbackrest", "name or path of pgBackRest, whose version is checked too where there is an "+
		"archive")
	f.StringVar(&o.TempFileLimit, "temp-file-limit", "", "most bytes of temporary files of one session, such as 10GB, or -1 for "+
		"no limit; by default "+setup.DefaultTempFileLimit+", unless temp_file_limit is set already")
	f.StringVar(&plan, "largest-plan", string(account.Business), "free, pro or business: the largest plan of which this server is "+
		"to hold a database; init refuses a max_connections that is too low for one")
	archiveSocket(f, &socket)
	f.DurationVar(&archived.Timeout, "archive-timeout", 10*time.Second,
		"after how long what PostgreSQL has written is stored in the archive, although it is less than 16 MiB")
	f.StringVar(&peer, "peer-user", "", "system user as whom to connect to PostgreSQL's socket where pg_hba.conf says peer, such "+
		"as postgres; only root can give another user than itself")
	f.StringVar(&owner, "credentials-owner", "", "system user that the agent runs as, if that is not the caller")
	return cmd
}

// fileOwner looks up the system user that a flag names; nil where it names none.
func fileOwner(flag, name string) (*setup.FileOwner, error) {
	if name == "" {
		return nil, nil
	}
	u, err := ownerOf(flag, name)
	if err != nil {
		return nil, err
	}
	return &setup.FileOwner{UID: u.UID, GID: u.GID}, nil
}

func prepare(cmd *cobra.Command, o setup.Options) error {
	report, err := setup.Init(cmd.Context(), o)
	for _, w := range report.Warnings {
		cmd.PrintErrln("warning:", w)
	}
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	_, err = fmt.Fprintln(out, "the server is prepared; the passwords of the platform's accounts are in", o.CredentialsFile)
	if err == nil && report.Restart {
		_, err = fmt.Fprintln(out, "restart PostgreSQL once: it keeps no archive before")
	}
	return err
}
