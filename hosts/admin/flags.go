package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// required marks flags without which a command is not understood.
func required(cmd *cobra.Command, flags ...string) *cobra.Command {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is not defined: a mistake in this package
		}
	}
	return cmd
}

// onID makes a command one about a single thing. A flag of the given name holds its ID, which is checked before the metadata
// database is asked.
func onID[T ~string](
	m *metadata, cmd *cobra.Command, flag string, do func(context.Context, *operator.Operator, T) (output, error),
) *cobra.Command {
	var text string
	cmd.Flags().StringVar(&text, flag, "", flag+" ID")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		thing, err := parse[T](flag, text)
		if err != nil {
			return err
		}
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) { return do(ctx, o, thing) })
	}
	return required(cmd, flag)
}

func parse[T ~string](flag, text string) (T, error) {
	v, err := id.Parse[T](text)
	if err != nil {
		return "", fault.Invalid(flag, "must be a lowercase UUID")
	}
	return v, nil
}

// ofDatabase is a list command about one database.
func (m *metadata) ofDatabase(
	use, short string, do func(context.Context, *operator.Operator, id.DatabaseID, ports.Page) (output, error),
) *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: use, Short: short}
	cmd.Flags().IntVar(&limit, "limit", 0, "most entries to list; 0 lists all")
	return onID(m, cmd, "database", func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
		return do(ctx, o, db, ports.Page{Limit: limit})
	})
}
