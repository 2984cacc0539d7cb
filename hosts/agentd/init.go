package agentd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

// initCommand is "pgherd agent init": the one step that needs a superuser of PostgreSQL.
func initCommand() *cobra.Command {
	var o setup.Options
	var owner string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "prepare a PostgreSQL server, once, with a superuser's connection; running it again repairs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Apply(cmd); err != nil {
				return err
			}
			if err := settings.Require(cmd, "server-url", "credentials-file"); err != nil {
				return err
			}
			if owner != "" {
				u, err := ownerOf(owner)
				if err != nil {
					return errors.Join(errors.New("--credentials-owner"), err)
				}
				o.CredentialsOwner = &setup.FileOwner{UID: u.UID, GID: u.GID}
			}
			return prepare(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.DSN, "server-url", "", "superuser's connection to the database postgres; better given by its variable")
	f.StringVar(&o.CredentialsFile, "credentials-file", "", "where to write the generated passwords, mode 0600")
	f.StringVar(&owner, "credentials-owner", "", "system user that the agent runs as, where another runs this")
	return cmd
}

func prepare(cmd *cobra.Command, o setup.Options) error {
	report, err := setup.Init(cmd.Context(), o)
	for _, w := range report.Warnings {
		cmd.PrintErrln("warning:", w)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(),
		"the server is prepared; the passwords of the platform's accounts are in", o.CredentialsFile)
	return err
}
