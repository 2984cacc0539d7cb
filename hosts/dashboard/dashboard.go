// Package dashboard is the host that serves the dashboard. Any number of them can run concurrently; a request may come to any.
package dashboard

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"

	"github.com/spf13/cobra"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/adapters/dashboard"
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/agent/door"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/version"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// Settings of the dashboard host.
type Settings struct {
	wiring.Settings
	wiring.Front
	Connections int
	PerAddress  int
	// OperatorNetworks are those from which operators use their console; none: there is no console.
	OperatorNetworks []string
}

// Command is "pgherd dashboard".
func Command() *cobra.Command {
	var s Settings
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "serve the dashboard",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			s.Kind = "dashboard"
			if err := errors.Join(s.Check(cmd), settings.Require(cmd, "dashboard-url"), s.CheckListen()); err != nil {
				return err
			}
			if s.Limits, err = s.Rates(); err != nil {
				return err
			}
			return wiring.Run(cmd.Context(), wiring.Base(s.Settings, system.NewClock()), Module(s), fx.Invoke(onHangup))
		},
	}
	s.Settings.Flags(cmd)
	s.Dashboard.Flags(cmd)
	s.SignOn.Flags(cmd)
	s.Front.Flags(cmd, "the dashboard", "127.0.0.1:8443")
	f := cmd.Flags()
	f.IntVar(&s.Connections, "max-connections", defaultConnections,
		"most open connections of this host; for one more, one without an admitted request is closed")
	f.IntVar(&s.PerAddress, "max-connections-per-address", defaultPerAddress,
		"most open connections of one client address that is no trusted proxy; at most half of all")
	f.StringSliceVar(&s.OperatorNetworks, "operator-networks", nil,
		"networks from which operators use their console, such as 10.0.0.0/8, or any; without it there is no console")
	return cmd
}

// console is where the operator's console is open; nil where there is none.
func (s Settings) console() (*web.Console, error) {
	if len(s.OperatorNetworks) == 0 {
		return nil, nil //nolint:nilnil // that there is none is no error
	}
	from, err := network.ParseList("operator-networks", s.OperatorNetworks)
	return &web.Console{Networks: from, Home: dashboard.ConsoleHome}, err
}

// A browser has one connection, or six to a proxy without HTTP/2.
const (
	defaultConnections = 4000
	defaultPerAddress  = 200
)

func onHangup(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, c certificate, r *wiring.Ring) {
	wiring.OnHangup(lc, stop, log, wiring.Certificate{Files: c.files}, r)
}

// certificate is that of the dashboard; without files where a proxy before it speaks TLS.
type certificate struct{ files *certfile.Files }

// Module is the dashboard host's own part: the listener.
func Module(s Settings) fx.Option {
	return fx.Module("dashboard",
		fx.Provide(
			func() (certificate, error) {
				files, err := s.OpenTLS("dashboard")
				return certificate{files}, err
			},
			func(
				cp *controlplane.ControlPlane, clock *system.Clock, log *zap.Logger, r metrics.Registry, c certificate,
				t trace.Tracer,
			) (*web.Server, error) {
				return newServer(s, cp, clock, log, r, c, t)
			},
		),
		fx.Invoke(func(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, server *web.Server, cp *controlplane.ControlPlane) {
			wiring.Attach(lc, stop, log, wiring.Part{Name: "live pages", Run: func(ctx context.Context) error {
				cp.Live.Run(ctx)
				return nil
			}})
			s.Serve(lc, stop, log, "dashboard", server)
		}),
		fx.Invoke(func(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, r metrics.Registry, c certificate) error {
			return wiring.Certify(lc, stop, log, r, wiring.Certificate{Files: c.files})
		}),
	)
}

func newServer(
	s Settings, cp *controlplane.ControlPlane, clock *system.Clock, log *zap.Logger, r metrics.Registry, c certificate,
	tracer trace.Tracer,
) (*web.Server, error) {
	origin, err := s.Dashboard.Origin(s.Mail.Dashboard)
	if err != nil {
		return nil, err
	}
	proxies, err := s.Trusted()
	if err != nil {
		return nil, err
	}
	var secure func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	if c.files != nil {
		secure = c.files.Certificate
	}
	unique := func() string { return system.Entropy{}.Base62(20) }
	links, err := mail.DashboardPages(s.Mail.Dashboard)
	if err != nil {
		return nil, err
	}
	console, err := s.console()
	if err != nil {
		return nil, err
	}
	pages := dashboard.Pages(cp, dashboard.Settings{
		Product: s.Dashboard.Product, Mails: s.Mail.Configured(), Pages: links, Console: console != nil, Version: version.Version(),
	}, unique)
	return web.New(web.Config{
		Gate: cp.Access, Pages: pages, Nav: dashboard.Nav, Console: console, Origin: origin, Proxies: proxies, TLS: secure,
		Product: s.Dashboard.Product, Log: log, Metrics: r, RequestID: unique, Now: clock.Now, Admit: door.Admit, Live: cp.Live,
		Tracer: tracer,
		Bound: func(h *http.Server) {
			door.Bound(h, door.Bounds{All: s.Connections, PerAddress: s.PerAddress, Proxies: proxies}, log)
		},
	})
}
