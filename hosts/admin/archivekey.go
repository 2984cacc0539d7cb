package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
)

func (m *metadata) serverArchiveKey() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "archive-key", Short: "print the key of a server's archive, for pgherd agent recover",
		Long: "Print the key of a server's archive, which pgherd agent recover needs to bring a server back that is lost.\n" +
			"Whoever has it and reaches the archive can read all databases of the server as they were. The log says who was\n" +
			"shown it.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the log shows it")
	return onID(m, m.asking(required(cmd, "reason")), "server",
		func(ctx context.Context, o *operator.Operator, of id.ServerID) (output, error) {
			s, has, err := o.Server(ctx, of)
			if err != nil {
				return nil, err
			}
			about := row{
				{"serverId", s.ID}, {"name", s.Name}, {"agentUrl", s.AgentURL}, {"databases", has.Databases}, {"answeredAt", s.AnsweredAt},
			}
			if err := m.confirm(cmd, s.Name, "Print the key, with which all of its databases can be read?", about); err != nil {
				return nil, err
			}
			s, key, err := o.ArchiveKey(ctx, of, reason)
			return row{{"serverId", s.ID}, {"name", s.Name}, {"installation", s.Installation}, {"archiveKey", key}}, err
		})
}
