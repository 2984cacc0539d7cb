// Package dev is the development host: a whole pgherd on one machine, in the foreground. PostgreSQL holds the metadata as well
// as the customers' databases; API, batch host and agent run in this process.
package dev

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/agent/blob/s3"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// Command is "pgherd dev".
func Command() *cobra.Command {
	var s Settings
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "run a whole pgherd on this machine, for development",
		Args:  cobra.NoArgs,
	}
	var store s3.Config
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if s.Blobs, err = settings.OpenObjectStore(cmd, store); err != nil {
			return err
		}
		if s.Blobs != nil {
			s.Objects = &store
		}
		return s.run(cmd.Context(), cmd.OutOrStdout())
	}
	settings.ObjectStore(cmd, &store)
	f := cmd.Flags()
	f.StringVar(&s.StateDir, "state-dir", filepath.Join(".pgherd", "dev"), "folder of everything that is kept")
	f.IntVar(&s.APIPort, "api-port", 8080, "port of the API")
	f.IntVar(&s.DashboardPort, "dashboard-port", 8443, "port of the dashboard")
	f.IntVar(&s.OpsPort, "ops-port", 8081, "port of /livez, /readyz, /metrics and /dev/clock")
	f.IntVar(&s.AgentPort, "agent-port", 8090, "port of the agent")
	f.IntVar(&s.PoolerPort, "pooler-port", 6432, "port that applications connect to")
	f.IntVar(&s.PostgresPort, "postgres-port", 5433, "port of PostgreSQL itself")
	f.IntVar(&s.Servers, "servers", 1, "how many database servers there are; each further one has the next ports")
	f.StringVar(&s.LogLevel, "log-level", "info", "debug, info, warn or error; the log is the file log in the state folder")
	f.BoolVar(&s.AllowPrivateWebhooks, "allow-private-webhooks", false,
		"let webhooks reach receivers, and CI tokens have issuers, on this machine and network")
	f.StringVar(&s.WebhookCAFile, "webhook-ca-file", "",
		"CA, in PEM, that certificates of receivers and issuers may have beside the system's")
	return cmd
}

// untilHangup ends ctx when the terminal is closed, unless the process was started to outlive that, as with nohup.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return ctx, func() {}
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

func (s Settings) run(ctx context.Context, out io.Writer) (err error) {
	ctx, release := untilHangup(ctx)
	defer release()
	if s.StateDir, err = filepath.Abs(s.StateDir); err != nil {
		return err
	}
	tools, err := toolchain.Find()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.StateDir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(s.path("lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.checkPorts(); err != nil {
		return err
	}
	return s.start(ctx, out, tools)
}

// start starts the infrastructure, then the hosts. If anything fails in that, everything that was started is stopped; what ends
// by itself later is started again.
func (s Settings) start(ctx context.Context, out io.Writer, tools toolchain.Tools) error {
	out = &terminal{out: out}
	fmt.Fprintln(out, "starting PostgreSQL, PgBouncer, the agent, the API, the dashboard and the batch host ...")
	if err := sayVersions(ctx, out, tools); err != nil {
		return err
	}
	g, err := s.startInfrastructure(ctx, tools)
	if err != nil {
		return err
	}
	defer g.stop()
	sayWarnings(out, g.warnings)
	log, closeLog, err := s.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	clock := system.NewClock()
	agentPart, err := s.startAgent(ctx, g, log, clock)
	if err != nil {
		return err
	}
	defer agentPart.stop()
	if err := g.startPooler(ctx); err != nil {
		return err
	}
	others, err := s.startOthers(ctx, g, log, clock)
	if err != nil {
		return err
	}
	defer others.stop()
	hosts, err := s.hosts(ctx, g, others, agentPart, log, clock)
	if err != nil {
		return err
	}
	ready := fx.Invoke(func(lc fx.Lifecycle) {
		lc.Append(fx.StartHook(func() error { return s.greet(out, g) }))
	})
	release := supervise(ctx, out, log, slices.Concat(g.children(), others.children(), []child{s.agentChild(agentPart)})...)
	err = wiring.Run(ctx, hosts, ready)
	release()
	fmt.Fprintln(out, "stopped; the state is kept")
	return err
}

// openLog opens the log of all hosts, so that the terminal stays readable.
func (s Settings) openLog() (*zap.Logger, func(), error) {
	log, err := wiring.NewLog(s.LogLevel, s.logFile())
	if err != nil {
		return nil, nil, err
	}
	return log, func() { _ = log.Sync() }, nil
}
