package wiring

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/adapters/metrics"
)

// Certificate is one that a host serves, or has served.
type Certificate struct {
	*certfile.Files
	Changed func() // is told of each renewal; may be nil
}

// Reread implements Followed.
func (c Certificate) Reread(log *zap.Logger) {
	if c.Files != nil && c.Look(log) && c.Changed != nil {
		c.Changed()
	}
}

// Certify keeps certificates up to date with their files, and exports when they end. One without files is passed over.
func Certify(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, r metrics.Registry, list ...Certificate) error {
	for _, c := range list {
		if c.Files == nil {
			continue
		}
		Follow(lc, stop, log, "certificate of "+c.Name(), c)
		err := r.Gauge("pgherd_certificate_not_after_timestamp_seconds", "When a certificate ends that this host uses.",
			map[string]string{"of": c.Name()}, func() float64 { return float64(c.NotAfter().Unix()) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Followed is what a host reads again when its files change. What it finds, it logs.
type Followed interface{ Reread(log *zap.Logger) }

// Follow has a host look at its files again and again.
func Follow(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, name string, f Followed) {
	Attach(lc, stop, log, Part{Name: name, Run: func(ctx context.Context) error {
		tick := time.NewTicker(certfile.Every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				f.Reread(log)
			}
		}
	}})
}

// OnHangup has a host look at its files at each SIGHUP.
func OnHangup(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, list ...Followed) {
	Attach(lc, stop, log, Part{Name: "SIGHUP", Run: func(ctx context.Context) error {
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-hangups:
				log.Info("SIGHUP: certificates and keys are read again")
			}
			for _, c := range list {
				c.Reread(log)
			}
		}
	}})
}
