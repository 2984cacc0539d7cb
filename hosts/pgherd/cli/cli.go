// Package cli has the commands of pgherd.
package cli

import (
	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/hosts/admin"
	"github.com/pgherd/pgherd/hosts/agentd"
	"github.com/pgherd/pgherd/hosts/api"
	"github.com/pgherd/pgherd/hosts/batch"
	"github.com/pgherd/pgherd/hosts/dashboard"
	"github.com/pgherd/pgherd/hosts/dev"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/version"
	"github.com/pgherd/pgherd/hosts/migrate"
	"github.com/pgherd/pgherd/hosts/single"
)

// Root is "pgherd".
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:               "pgherd",
		Version:           version.Build(),
		Short:             "a self-hosted managed PostgreSQL service",
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return settings.Apply(cmd) },
	}
	root.AddCommand(
		api.Command(), batch.Command(), dashboard.Command(), agentd.Command(), dev.Command(), admin.Command(), migrate.Command(),
		single.Command(),
	)
	settings.ExplainFlags(root)
	return root
}
