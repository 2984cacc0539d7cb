package agentd

import (
	"fmt"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// certificates are the agent's own, and PgBouncer's, which reads its files itself when it is told to.
type certificates struct{ own, pooler *certfile.Files }

func (s *Settings) openCertificates() (c certificates, err error) {
	if c.own, err = certfile.Open("agent", s.TLSCertFile, s.TLSKeyFile); err != nil {
		return c, fmt.Errorf("%s, %s: %w", settings.Flag("tls-cert-file"), settings.Flag("tls-key-file"), err)
	}
	p := s.Agent.Pooler
	if c.pooler, err = certfile.OpenForeign("pgbouncer", p.TLSCertFile, p.TLSKeyFile); err != nil {
		return c, fmt.Errorf("%s, %s: %w", settings.Flag("pooler-tls-cert-file"), settings.Flag("pooler-tls-key-file"), err)
	}
	return c, nil
}

// keepFiles has renewed certificates and exchanged secrets used.
func keepFiles(
	lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, r metrics.Registry, c certificates, k *secrets, a *agent.Agent,
) error {
	own, bouncer := wiring.Certificate{Files: c.own}, wiring.Certificate{Files: c.pooler, Changed: a.ReloadPooler}
	wiring.OnHangup(lc, stop, log, own, bouncer, k)
	wiring.Follow(lc, stop, log, "agent's secrets", k)
	return wiring.Certify(lc, stop, log, r, own, bouncer)
}
