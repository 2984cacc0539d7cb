package admin

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/server"
)

func (m *metadata) server() *cobra.Command {
	return group("server", "database servers", m.serverAdd(), m.serverList(), m.serverSet(),
		m.serverSwitch("disable", "place no new databases on a server; existing ones stay", false),
		m.serverSwitch("enable", "place new databases on a server again", true))
}

func (m *metadata) serverAdd() *cobra.Command {
	var n operator.NewServer
	var caFile string
	var connections int
	cmd := &cobra.Command{
		Use: "add", Short: "register a database server", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("connections") {
				n.Connections = &connections
			}
			if caFile != "" {
				pem, err := os.ReadFile(caFile)
				if err != nil {
					return err
				}
				n.CA = string(pem)
			}
			return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
				s, err := o.AddServer(ctx, n)
				if err == nil && n.Connections == nil && s.Connections == 0 {
					cmd.PrintErrf(notCounted, s.ID)
				}
				return serverRow(s), err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&n.Name, "name", "", "unique name")
	f.StringVar(&n.AgentURL, "agent-url", "", "https://host:port of the agent")
	f.StringVar(&n.Secret, "agent-secret", "", "shared secret of the agent; prefer PGHERD_AGENT_SECRET or PGHERD_AGENT_SECRET_FILE")
	f.StringVar(&caFile, "agent-ca-file", "", "CA of the agent's certificate in PEM; by default the system's roots")
	f.StringVar(&n.PublicHost, "public-host", "", "host that customers connect to")
	f.IntVar(&n.PublicPort, "public-port", 6432, "port that customers connect to")
	f.IntVar(&n.Capacity, "capacity", 1000, "most databases that the server holds")
	f.IntVar(&connections, "connections", 0, connectionsUsage+"; by default what the agent says that there are")
	return required(cmd, "name", "agent-url", "public-host")
}

// notCounted warns that the same connections can be sold twice.
const notCounted = "The agent did not say how many connections its databases may have, so they are not counted. Once it runs:\n" +
	"  pgherd admin server set --server %s --connections N\n"

const connectionsUsage = "most connections that the databases may have together, 5 more than its cap for each; 0 counts none"

func (m *metadata) serverSet() *cobra.Command {
	var capacity, connections int
	cmd := &cobra.Command{Use: "set", Short: "change how much a server takes; what it has already stays"}
	f := cmd.Flags()
	f.IntVar(&capacity, "capacity", 0, "most databases that the server holds")
	f.IntVar(&connections, "connections", 0, connectionsUsage)
	return onID(m, cmd, "server", func(ctx context.Context, o *operator.Operator, s id.ServerID) (output, error) {
		changed, err := o.ChangeServer(ctx, s, func(s *server.Server) {
			if f.Changed("capacity") {
				s.Capacity = capacity
			}
			if f.Changed("connections") {
				s.Connections = connections
			}
		})
		return serverRow(changed), err
	})
}

func (m *metadata) serverList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "list the servers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
				servers, err := o.Servers(ctx)
				return tableOf(servers, serverRow), err
			})
		},
	}
}

func serverRow(s server.Server) row {
	return row{
		{"serverId", s.ID}, {"name", s.Name}, {"agentUrl", s.AgentURL}, {"publicHost", s.PublicHost},
		{"publicPort", s.PublicPort}, {"capacity", s.Capacity}, {"connections", s.Connections}, {"enabled", s.Enabled},
		{"avoidedUntil", stamp(s.AvoidedUntil)},
	}
}

func (m *metadata) serverSwitch(use, short string, enabled bool) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	return onID(m, cmd, "server", func(ctx context.Context, o *operator.Operator, s id.ServerID) (output, error) {
		changed, err := o.ChangeServer(ctx, s, func(s *server.Server) { s.Enabled = enabled })
		return serverRow(changed), err
	})
}

func (m *metadata) feature() *cobra.Command {
	toggle := func(use string, on bool) *cobra.Command {
		return &cobra.Command{
			Use: use + " NAME", Short: use + " a feature: " + strings.Join(rollout.Features(), ", "),
			Args: cobra.ExactArgs(1), ValidArgs: rollout.Features(),
			RunE: func(cmd *cobra.Command, args []string) error {
				return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
					return row{{"feature", args[0]}, {"enabled", on}}, o.SetFeature(ctx, args[0], on)
				})
			},
		}
	}
	return group("feature", "features that are on or off for the whole installation",
		toggle("enable", true), toggle("disable", false))
}

func (m *metadata) maintenance() *cobra.Command {
	return &cobra.Command{
		Use: "maintenance on|off", Short: "start or end maintenance; meanwhile the API answers MAINTENANCE", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "on" && args[0] != "off" {
				return fault.Invalid("maintenance", "must be on or off")
			}
			return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
				return row{{"maintenance", args[0]}}, o.SetMaintenance(ctx, args[0] == "on")
			})
		},
	}
}
