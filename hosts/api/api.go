// Package api is the host that serves the control plane API. Any number of API hosts can run concurrently.
package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

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
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// Settings of the API host.
type Settings struct {
	wiring.Settings
	Listen      string
	TLSCertFile string
	TLSKeyFile  string
	// InsecureListen lets the API speak clear text beyond this machine.
	InsecureListen bool
	Proxies        []string
	Grace          time.Duration
	Limits         map[string]string
	HTTP           serve.Limits
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
			if err := s.checkListen(); err != nil {
				return err
			}
			if s.Settings.Limits, err = parseLimits(s.Limits); err != nil {
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
	f := cmd.Flags()
	f.StringVar(&s.Listen, "listen", "127.0.0.1:8080", "address of the API")
	f.StringVar(&s.TLSCertFile, "tls-cert-file", "", "certificate chain in PEM; with it the API speaks TLS itself")
	f.StringVar(&s.TLSKeyFile, "tls-key-file", "", "private key of the certificate")
	f.BoolVar(&s.InsecureListen, "insecure-listen", false,
		"speak clear text beyond this machine: for a trusted network with a proxy that speaks TLS")
	f.StringSliceVar(&s.Proxies, "trusted-proxies", nil, "networks whose X-Forwarded-For is believed, such as 10.0.0.0/8")
	f.DurationVar(&s.Grace, "shutdown-grace", 30*time.Second, "how long open requests may take when the host stops")
	f.IntVar(&s.HTTP.Connections, "max-connections", s.HTTP.Connections,
		"most open connections of this host; for one more, one without an admitted request is closed")
	f.IntVar(&s.HTTP.ConnectionsPerAddress, "max-connections-per-address", s.HTTP.ConnectionsPerAddress,
		"most open connections of one client address that is no trusted proxy (IPv6: of a /64 network; a /56 may have twice as many, "+
			"a /48 four times); at most half of all")
	f.StringToStringVar(&s.Limits, "rate-limits", nil,
		"limits by class, such as read=600/1m,write=120/1m,create=30/1m,reveal=60/1m,reservation=6/1h,unauthorized=30/1m")
	f.IntVar(&s.DownloadsPerAccount, "downloads-per-account", base.DefaultDownloadsPerAccount,
		"backup downloads that an account may have at a time at this host, and uploads that it sends; at most 16")
	f.Int64Var(&s.HTTP.Download.Rate, "download-min-rate", s.HTTP.Download.Rate,
		"bytes a second that the client of a download must take; one that falls behind by 30 s of that is cut off")
}

// Module is the API host's own part: the listener.
func Module(s Settings) fx.Option {
	return fx.Module("api",
		fx.Provide(
			func() (*certfile.Files, error) { return wiring.OpenTLS("api", s.TLSCertFile, s.TLSKeyFile) },
			func(cp *controlplane.ControlPlane, log *zap.Logger, r metrics.Registry, f *certfile.Files) (*serve.Server, error) {
				return newServer(s, cp, log, r, f)
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
			wiring.Listen(lc, stop, log, wiring.Address{Part: "api", Flag: "listen", Address: s.Listen}, graceful{server, s.Grace})
		}),
		fx.Invoke(func(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, r metrics.Registry, f *certfile.Files) error {
			return wiring.Certify(lc, stop, log, r, wiring.Certificate{Files: f})
		}),
	)
}

func newServer(
	s Settings, cp *controlplane.ControlPlane, log *zap.Logger, r metrics.Registry, files *certfile.Files,
) (*serve.Server, error) {
	proxies, err := wiring.Networks("trusted-proxies", s.Proxies)
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
	})
}

// checkListen refuses clear text that others on a network could read: it holds keys and passwords.
func (s *Settings) checkListen() error {
	if s.TLSCertFile != "" || s.InsecureListen || wiring.Loopback(s.Listen) {
		return nil
	}
	return fmt.Errorf("--listen %s would speak clear text beyond this machine: give --tls-cert-file and --tls-key-file, "+
		"or --insecure-listen where a proxy on a trusted network speaks TLS", s.Listen)
}

// graceful bounds how long a shutdown waits for open requests.
type graceful struct {
	*serve.Server
	grace time.Duration
}

// Shutdown lets open requests finish, then cuts them off.
func (g graceful) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, g.grace)
	defer cancel()
	return g.Server.Shutdown(ctx)
}
