package agentd

import (
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// certificates are the agent's own, and PgBouncer's, which reads its files itself when it is told to.
type certificates struct{ own, pooler *certfile.Files }

func (s *Settings) openCertificates() (c certificates, err error) {
	if c.own, err = certfile.Open("agent", s.TLSCertFile, s.TLSKeyFile); err != nil {
		return c, err
	}
	p := s.Agent.Pooler
	c.pooler, err = certfile.OpenForeign("pgbouncer", p.TLSCertFile, p.TLSKeyFile)
	return c, err
}

// keepCertificates has renewed certificates used.
func keepCertificates(
	lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, r wiring.Registry, c certificates, a *agent.Agent,
) error {
	list := []wiring.Certificate{{Files: c.own}, {Files: c.pooler, Changed: a.ReloadPooler}}
	wiring.OnHangup(lc, stop, log, list...)
	return wiring.Certify(lc, stop, log, r, list...)
}
