package dev

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/adapters/webhooksender"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/hosts/agentd"
	"github.com/pgherd/pgherd/hosts/api"
	"github.com/pgherd/pgherd/hosts/batch"
	"github.com/pgherd/pgherd/hosts/dashboard"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
	"github.com/pgherd/pgherd/ports"
)

// shutdownGrace is short: whoever presses Ctrl-C wants the terminal back.
const shutdownGrace = 5 * time.Second

// hosts are API and batch host in one, on the seed of the first start.
func (s Settings) hosts(
	ctx context.Context, g *infrastructure, beside others, running *runningAgent, log *zap.Logger, clock *system.Clock,
) (o fx.Option, err error) {
	if err := s.sow(ctx, g, beside, clock); err != nil {
		return nil, err
	}
	base := wiring.Settings{
		Kind:        "dev",
		MetadataURL: g.metadataURL, KeyringFile: s.keyringFile(), OpsListen: address(s.OpsPort), LogLevel: s.LogLevel,
		Limits: wiring.TenTimes(ratelimit.Defaults()), DefaultPostgres: g.tools.Major,
	}
	base.Mail.Dir = s.mailbox()
	base.Mail.Dashboard, base.Dashboard.Product = s.dashboardURL(), "pgherd"
	cert, err := g.ca.Issue("dashboard", publicHost, loopback)
	if err != nil {
		return nil, err
	}
	if base.Webhooks, err = s.webhooks(); err != nil {
		return nil, err
	}
	limits := serve.DefaultLimits()
	limits.Connections = min(limits.Connections, max(256, api.MostConnections()))
	limits.ConnectionsPerAddress = slot.Half(limits.Connections) // all clients of a development host have the same address
	return fx.Options(
		wiring.Base(base, clock),
		fx.Replace(log),
		api.Module(api.Settings{
			Settings: base, Front: wiring.Front{Listen: address(s.APIPort), Grace: shutdownGrace}, HTTP: limits,
		}),
		dashboard.Module(dashboard.Settings{
			Settings: base, Connections: limits.Connections, PerAddress: limits.ConnectionsPerAddress, Front: wiring.Front{
				Listen: address(s.DashboardPort), TLSCertFile: cert.CertFile, TLSKeyFile: cert.KeyFile, Grace: shutdownGrace,
			},
			OperatorNetworks: []string{"any"},
		}),
		batch.Module(batch.Settings{Settings: base, Workers: work.Workers{All: 8}, Deliveries: batch.DefaultDeliveries}),
		fx.Invoke(func(r metrics.Registry) error {
			return agentd.Measure(r.Labelled("server", serverName), running.measured)
		}),
		fx.Invoke(func(o *wiring.Ops) { o.Handle("POST /dev/clock", moveClock(clock)) }),
		fx.Invoke(qualifyExtensions),
	), nil
}

// webhooks says where webhooks may go; without the flags, where those of every other host may.
func (s Settings) webhooks() (o webhooksender.Options, err error) {
	o.Policy.AllowPrivate = s.AllowPrivateWebhooks
	if s.WebhookCAFile != "" {
		o.ExtraCA, err = os.ReadFile(s.WebhookCAFile)
	}
	return o, err
}

// sow makes what the first start makes, brings the server's record up to date, and writes the facts for a shell.
func (s Settings) sow(ctx context.Context, g *infrastructure, beside others, clock *system.Clock) error {
	console := wiring.Console{
		MetadataURL: g.metadataURL, Clock: clock,
		Box: func() (ports.SecretBox, error) { return secretbox.Load(s.keyringFile()) },
	}
	err := console.Operate(ctx, func(ctx context.Context, o *operator.Operator) (err error) {
		if g.seed, err = plant(ctx, s.seedFile(), o); err != nil {
			return err
		}
		if err := certify(ctx, o); err != nil {
			return err
		}
		if err := s.register(ctx, serverName, g, o); err != nil {
			return err
		}
		for i, n := range beside {
			if err := n.settings.register(ctx, fmt.Sprintf("%s%d", serverName, i+2), n.infrastructure, o); err != nil {
				return err
			}
		}
		owner, err := o.Account(ctx, g.seed.AccountID)
		if err != nil {
			return err
		}
		if err := o.AddOperator(ctx, owner.Email); err != nil {
			return err
		}
		link, err := o.LinkUser(ctx, owner.Email)
		g.logInURL = s.dashboardURL() + "/link/" + link.Token
		return err
	})
	if err != nil {
		return err
	}
	return s.facts(g).write(s.envFile())
}

const (
	serverName     = "dev"
	serverCapacity = 1000
)

// register makes the server's record, or changes it where ports were changed by a flag.
func (s Settings) register(ctx context.Context, name string, g *infrastructure, o *operator.Operator) error {
	ca, err := g.caText()
	if err != nil {
		return err
	}
	postgres, err := floors.Find(ctx, g.tools.Postgres, nil)
	if err != nil {
		return err
	}
	set := func(v *server.Server) {
		v.AgentURL, v.CA, v.PublicHost, v.PublicPort = s.agentURL(), ca, publicHost, s.PoolerPort
		v.PostgresVersion = postgres.Number[0] // databases may be made before anybody has asked the agent
	}
	uncounted := 0 // for development: many databases, few connections to each
	known, err := o.Servers(ctx)
	if err != nil {
		return err
	}
	for _, v := range known {
		if v.Name == name {
			_, err := o.ChangeServer(ctx, v.ID, set)
			return err
		}
	}
	added, err := o.AddServer(ctx, operator.NewServer{
		Name: name, AgentURL: s.agentURL(), Secret: g.agentSecret, CA: ca, PublicHost: publicHost,
		PublicPort: s.PoolerPort, Capacity: serverCapacity, Connections: &uncounted,
		Unchecked: true, // its agent starts later
	})
	if err == nil {
		_, err = o.ChangeServer(ctx, added.ID, set)
	}
	return err
}
