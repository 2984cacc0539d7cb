package admin

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/version"
)

func (m *metadata) server() *cobra.Command {
	return group("server", "database servers", m.serverAdd(), m.serverList(), m.serverShow(), m.serverCheck(), m.serverSet(),
		m.serverSwitch("disable", "place no new databases on a server; existing ones stay", false),
		m.serverSwitch("enable", "place new databases on a server again", true), m.serverRecover(), m.serverDrain(), m.serverRemove(),
		m.serverArchiveKey())
}

// reach is how the agent of a server is reached, as flags say it.
type reach struct{ caFile, secretFile string }

func (r *reach) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.caFile, "agent-ca-file", "",
		"CA of the agent's certificate in PEM, or the former one and the new one; by default the system's roots")
	f.StringVar(&r.secretFile, "agent-secret-file", "", "file with the agent's shared secret in its first line")
}

// read returns what the files hold. Of the secret's, the first line counts: below it, the agent's has the former secret.
func (r *reach) read() (ca, secret string, err error) {
	if r.caFile != "" {
		if ca, err = readBounded(r.caFile); err != nil {
			return "", "", fault.Invalid("agentCaFile", "%s; give a file with the CA's certificate in PEM", err)
		}
		if err := server.CheckAuthorities(ca); err != nil {
			return "", "", fault.Invalid("agentCaFile", "%s: %s", r.caFile, err)
		}
	}
	if r.secretFile != "" {
		text, err := readBounded(r.secretFile)
		if err != nil {
			return "", "", fault.Invalid("agentSecretFile", "%s", err)
		}
		list, err := server.ParseSecrets(text)
		if err != nil {
			return "", "", fault.Invalid("agentSecretFile", "%s: %s", r.secretFile, err)
		}
		secret = list[0]
	}
	return ca, secret, nil
}

// longest is how many bytes of a file are read: more than any that is meant has.
const longest = 1 << 20

// readBounded reads a file as far as it may be what is asked for: one that has no end is refused as one that is too long.
func readBounded(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, longest))
	return string(text), err
}

func (m *metadata) serverAdd() *cobra.Command {
	var n operator.NewServer
	var from reach
	var connections int
	cmd := &cobra.Command{
		Use: "add", Short: "register a database server, after a look at its agent", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("connections") {
				n.Connections = &connections
			}
			ca, secret, err := from.read()
			if err != nil {
				return err
			}
			if n.Secret != "" && secret != "" { // the variable may be that of an agent on this machine
				return errors.New("--agent-secret and --agent-secret-file, or their variables, are both set: leave one of them out")
			}
			n.CA, n.Version, n.Secret = ca, version.Version(), n.Secret+secret
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
	f.StringVar(&n.Secret, "agent-secret", "", "shared secret of the agent; prefer --agent-secret-file")
	from.flags(cmd)
	f.StringVar(&n.PublicHost, "public-host", "", "host that customers connect to")
	f.IntVar(&n.PublicPort, "public-port", 6432, "port that customers connect to")
	f.IntVar(&n.Capacity, "capacity", 1000, "most databases that the server holds")
	f.IntVar(&connections, "connections", 0, connectionsUsage+"; by default what the agent says that there are")
	f.BoolVar(&n.Unchecked, "unchecked", false, "do not talk to the agent, which may not run yet; server check does it later")
	return required(cmd, "name", "agent-url", "public-host")
}

// notCounted warns that the same connections can be sold twice.
const notCounted = "The agent did not say how many connections its databases may have, so they are not counted. Once it runs:\n" +
	"  pgherd admin server set --server %s --connections N\n"

const connectionsUsage = "most connections that the databases may have together, 5 more than its cap for each; 0 counts none"

func (m *metadata) serverSet() *cobra.Command {
	var c operator.ServerChange
	var from reach
	var publicPort, capacity, connections int
	var enabled bool
	cmd := &cobra.Command{
		Use: "set", Short: "change how a server is reached, or how much it takes; what it has already stays",
		Long: "Change what a flag is given for. Environment variables count for none of these. A change of the agent's URL, CA or\n" +
			"secret is tried before it is stored, and must lead to the same server.",
	}
	f := cmd.Flags()
	f.StringVar(&c.AgentURL, "agent-url", "", "https://host:port of the agent")
	from.flags(cmd)
	f.StringVar(&c.PublicHost, "public-host", "", "host that customers connect to")
	f.IntVar(&publicPort, "public-port", 0, "port that customers connect to")
	f.IntVar(&capacity, "capacity", 0, "most databases that the server holds")
	f.IntVar(&connections, "connections", 0, connectionsUsage)
	f.BoolVar(&enabled, "enabled", true, "place new databases on the server")
	f.BoolVar(&c.Unchecked, "unchecked", false, "do not talk to the agent first")
	changeable := []string{
		"agent-url", "agent-ca-file", "agent-secret-file", "public-host", "public-port", "capacity", "connections", "enabled",
	}
	settings.Explicit(cmd, append(changeable, "unchecked")...)
	return onID(m, cmd, "server", func(ctx context.Context, o *operator.Operator, s id.ServerID) (output, error) {
		if !slices.ContainsFunc(changeable, f.Changed) {
			return nil, errors.New("nothing is to change: give one of --" + strings.Join(changeable, ", --"))
		}
		ca, secret, err := from.read()
		if err != nil {
			return nil, err
		}
		if c.Secret, c.Version = secret, version.Version(); f.Changed("agent-ca-file") {
			c.CA = &ca
		}
		for name, of := range map[string]struct {
			to    **int
			value *int
		}{
			"public-port": {&c.PublicPort, &publicPort}, "capacity": {&c.Capacity, &capacity},
			"connections": {&c.Connections, &connections},
		} {
			if f.Changed(name) {
				*of.to = of.value
			}
		}
		if f.Changed("enabled") {
			c.Enabled = &enabled
		}
		changed, err := o.SetServer(ctx, s, c)
		return serverRow(changed), err
	})
}

func (m *metadata) serverShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show", Short: "show one server, and what stands on it"}
	return onID(m, cmd, "server", func(ctx context.Context, o *operator.Operator, of id.ServerID) (output, error) {
		s, n, err := o.Server(ctx, of)
		installation := any(nil)
		if s.Installation != "" {
			installation = s.Installation
		}
		return append(serverRow(s), row{
			{"installation", installation}, {"createdAt", s.CreatedAt}, {"databases", n.Databases},
			{"deletedDatabases", n.Deleted}, {"capacityUsed", n.Databases + n.Deleted}, {"connectionsSold", n.Sold},
			{"backups", n.Backups}, {"openOperations", n.Operations}, {"pendingChanges", n.Changes},
		}...), err
	})
}

var errServerWrong = errors.New("something is wrong with the server")

func (m *metadata) serverCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", Short: "talk to a server's agent, and look at its public address",
		Long: "Say of each thing that is looked at whether it is well, and what to do where it is not. The exit status is 1 where\n" +
			"something is wrong. The public address is tried from this machine; which CA customers trust is not known here.",
	}
	wrong := false
	onID(m, cmd, "server", func(ctx context.Context, o *operator.Operator, of id.ServerID) (output, error) {
		_, found, err := o.CheckServer(ctx, of, version.Version())
		wrong = server.AnyWrong(found)
		return findings(found), err
	})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil {
			return err
		}
		if wrong {
			return errServerWrong
		}
		return nil
	}
	return cmd
}

func (m *metadata) serverRemove() *cobra.Command {
	var lose bool
	cmd := &cobra.Command{Use: "remove", Short: "forget a server on which nothing stands"}
	cmd.Flags().BoolVar(&lose, "lose-backups", false,
		"give up the backups that it has of databases that have left it, and that did not come along")
	return onID(m, cmd, "server", func(ctx context.Context, o *operator.Operator, s id.ServerID) (output, error) {
		remove := o.RemoveServer
		if lose {
			remove = o.RemoveServerAndBackups
		}
		removed, err := remove(ctx, s)
		return row{{"serverId", s}, {"name", removed.Name}, {"removed", err == nil}}, err
	})
}

func (m *metadata) serverList() *cobra.Command {
	return m.command("list", "list the servers",
		func(ctx context.Context, o *operator.Operator) (output, error) {
			servers, err := o.Servers(ctx)
			if err != nil {
				return nil, err
			}
			drains, err := o.Drains(ctx)
			return tableOf(servers, func(s server.Server) row { return append(serverRow(s), field{"drain", drainOf(drains, s)}) }), err
		})
}

func serverRow(s server.Server) row {
	return row{
		{"serverId", s.ID}, {"name", s.Name}, {"agentUrl", s.AgentURL}, {"publicHost", s.PublicHost},
		{"publicPort", s.PublicPort}, {"capacity", s.Capacity}, {"connections", s.Connections},
		{"postgresVersion", orNull(s.PostgresVersion)}, {"enabled", s.Enabled},
		{"avoidedUntil", s.AvoidedUntil}, {"answeredAt", s.AnsweredAt}, {"awaySince", s.AwaySince},
	}
}

// orNull is nil where a number is not known.
func orNull(n int) any {
	if n == 0 {
		return nil
	}
	return n
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
		m.featureList(), toggle("enable", true), toggle("disable", false))
}

func (m *metadata) maintenance() *cobra.Command {
	return &cobra.Command{
		Use: "maintenance on|off|status", Args: cobra.ExactArgs(1),
		Short: "start or end maintenance, or show whether it is on; meanwhile the API answers MAINTENANCE",
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "status" {
				return m.work(cmd, maintenanceStatus)
			}
			if args[0] != "on" && args[0] != "off" {
				return fault.Invalid("maintenance", "must be on, off or status")
			}
			return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
				return row{{"maintenance", args[0]}}, o.SetMaintenance(ctx, args[0] == "on")
			})
		},
	}
}
