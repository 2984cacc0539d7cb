// Package api is the host that serves the control plane API. Any number of API hosts can run concurrently.
package api

import (
	"context"
	"crypto/tls"
	"errors"

	"github.com/spf13/cobra"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/adapters/httpapi"
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// Settings of the API host.
type Settings struct {
	wiring.Settings
	wiring.Front
	HTTP serve.Limits
}

// Command is "pgherd api".
func Command() *cobra.Command {
	s := Settings{HTTP: serve.DefaultLimits()}
	cmd := &cobra.Command{
		Use:   "api",
		Short: "serve the control plane API",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			s.Kind = "api"
			if err := s.Check(cmd); err != nil {
				return err
			}
			if err := s.CheckListen(); err != nil {
				return err
			}
			if s.Limits, err = s.Rates(); err != nil {
				return err
			}
			if err := errors.Join(checkConnections(s.HTTP), s.checkDownloads()); err != nil {
				return err
			}
			return wiring.Run(cmd.Context(), wiring.Base(s.Settings, system.NewClock()), Module(s), fx.Invoke(onHangup))
		},
	}
	s.Flags(cmd)
	return cmd
}

func onHangup(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, f *certfile.Files, r *wiring.Ring) {
	wiring.OnHangup(lc, stop, log, wiring.Certificate{Files: f}, r)
}

// Flags gives a command the settings of the API host.
func (s *Settings) Flags(cmd *cobra.Command) {
	s.Settings.Flags(cmd)
	s.Front.Flags(cmd, "the API", "127.0.0.1:8080")
	f := cmd.Flags()
	f.IntVar(&s.HTTP.Connections, "max-connections", s.HTTP.Connections,
		"most open connections of this host; for one more, one without an admitted request is closed")
	f.IntVar(&s.HTTP.ConnectionsPerAddress, "max-connections-per-address", s.HTTP.ConnectionsPerAddress,
		"most open connections of one client address that is no trusted proxy (IPv6: of a /64 network; a /56 may have twice as many, "+
			"a /48 four times); at most half of all")
	f.IntVar(&s.DownloadsPerAccount, "downloads-per-account", base.DefaultDownloadsPerAccount,
		"backup downloads that an account may have at a time at this host, and uploads that it sends; at most 16")
	f.Int64Var(&s.HTTP.Download.Rate, "download-min-rate", s.HTTP.Download.Rate,
		"bytes a second that the client of a download must take; one that falls behind by 30 s of that is cut off")
}

// Module is the API host's own part: the listener.
func Module(s Settings) fx.Option {
	return fx.Module("api",
		fx.Provide(
			func() (*certfile.Files, error) { return s.OpenTLS("api") },
			func(
				cp *controlplane.ControlPlane, log *zap.Logger, r metrics.Registry, f *certfile.Files, t trace.Tracer,
			) (*serve.Server, error) {
				return newServer(s, cp, log, r, f, t)
			},
		),
		fx.Invoke(func(
			lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, server *serve.Server, cp *controlplane.ControlPlane,
		) {
			for _, u := range upkeep(cp.Access) {
				wiring.Attach(lc, stop, log, wiring.Part{Name: u.name, Run: func(ctx context.Context) error {
					u.run(ctx, log)
					return nil
				}})
			}
			s.Serve(lc, stop, log, "api", server)
		}),
		fx.Invoke(func(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, r metrics.Registry, f *certfile.Files) error {
			return wiring.Certify(lc, stop, log, r, wiring.Certificate{Files: f})
		}),
	)
}

func newServer(
	s Settings, cp *controlplane.ControlPlane, log *zap.Logger, r metrics.Registry, files *certfile.Files,
	tracer trace.Tracer,
) (*serve.Server, error) {
	proxies, err := s.Trusted()
	if err != nil {
		return nil, err
	}
	var secure *tls.Config
	if files != nil {
		secure = serve.TLS(files.Certificate)
	}
	return serve.New(serve.Config{
		Gate: httpapi.NewGate(cp), Routes: httpapi.Routes(cp), Limits: s.HTTP, Proxies: proxies,
		TLS: secure, Log: log, Metrics: r, RequestID: func() string { return system.Entropy{}.Base62(20) },
		Tracer: tracer,
	})
}
