package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
)

func (m *metadata) extensions() *cobra.Command {
	return group("extensions", "PostgreSQL extensions, and the servers on which they were proven to be restorable",
		m.extensionsQualify(), m.extensionsList())
}

// extensionsQualify shows what was found out, and fails where an extension is not qualified.
func (m *metadata) extensionsQualify() *cobra.Command {
	return m.onServers("qualify", "really install, use, dump, restore and compare each extension, and store the result",
		func(o *operator.Operator, ctx context.Context, s server.Server) ([]extension.Qualification, error) {
			trials, err := o.QualifyExtensions(ctx, s.ID)
			for _, q := range trials {
				if !q.Qualified {
					err = errors.Join(err, fmt.Errorf("%s is not qualified: %s", q.Extension, q.Message))
				}
			}
			return trials, err
		})
}

func (m *metadata) extensionsList() *cobra.Command {
	return m.onServers("list", "show what the last trials found out", (*operator.Operator).Trials)
}

// onServers is a command about the extensions of one server, or of all. It shows what there is to show even where it fails.
func (m *metadata) onServers(
	use, short string, do func(*operator.Operator, context.Context, server.Server) ([]extension.Qualification, error),
) *cobra.Command {
	var only string
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	cmd.Flags().StringVar(&only, "server", "", called[id.ServerID]()+"; by default all servers")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var failed error
		err := m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
			servers, err := serversOf(ctx, o, only)
			rows := table{}
			for _, s := range servers {
				trials, err := do(o, ctx, s)
				rows = append(rows, tableOf(trials, func(q extension.Qualification) row { return trialRow(s, q) })...)
				if err != nil {
					failed = errors.Join(failed, fmt.Errorf("server %s: %w", s.Name, err))
				}
			}
			return rows.only("server", "extension", "supported", "version", "qualified", "at", "message"), err
		})
		return errors.Join(err, failed)
	}
	return cmd
}

// serversOf are the server of that ID, or all where there is none.
func serversOf(ctx context.Context, o *operator.Operator, only string) ([]server.Server, error) {
	all, err := o.Servers(ctx)
	if err != nil || only == "" {
		return all, err
	}
	wanted, err := find[id.ServerID](ctx, o, "server", only)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.ID == wanted {
			return []server.Server{s}, nil
		}
	}
	return nil, fault.Invalid("server", "does not exist")
}

func trialRow(s server.Server, q extension.Qualification) row {
	r := row{
		{"serverId", s.ID}, {"server", s.Name}, {"extension", q.Extension}, {"supported", q.Extension.Version(s.PostgresVersion)},
		{"qualified", q.Qualified},
	}
	if q.At.IsZero() {
		return append(r, field{"version", nil}, field{"serverVersion", nil}, field{"at", nil}, field{"message", "never tried"})
	}
	return append(r, field{"version", q.Version}, field{"serverVersion", q.ServerVersion}, field{"at", q.At},
		field{"message", q.Message})
}
