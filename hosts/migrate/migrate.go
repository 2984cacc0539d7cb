// Package migrate is "pgherd migrate", which upgrades the metadata database to the schema that this program knows.
package migrate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// Command is "pgherd migrate". If several run at once, one migrates and the others wait.
func Command() *cobra.Command {
	var url string
	var stopped bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "upgrade the metadata database to this program's schema",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Require(cmd, "metadata-url"); err != nil {
				return err
			}
			migrate := postgres.Migrate
			if stopped {
				migrate = postgres.MigrateStopped
			}
			if err := migrate(cmd.Context(), url); err != nil {
				return wiring.NotUsed(err)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "the metadata database is up to date")
			return err
		},
	}
	cmd.Flags().StringVar(&url, "metadata-url", "", "PostgreSQL URL of the metadata database, as the owner of its schema")
	cmd.Flags().BoolVar(&stopped, "hosts-stopped", false, "no host of the control plane runs: upgrade over versions whose hosts "+
		"the new schema does not serve")
	return cmd
}
