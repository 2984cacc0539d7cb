package dev

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/controlplane"
)

// qualifyExtensions tries at each start, in the background, which extensions can be restored on this machine: none can be
// installed before the first trial. What was found out at an earlier start holds until then.
func qualifyExtensions(lc fx.Lifecycle, cp *controlplane.ControlPlane, log *zap.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			running.Go(func() { tryExtensions(ctx, cp, log) })
			return nil
		},
		OnStop: func(context.Context) error {
			cancel()
			running.Wait()
			return nil
		},
	})
}

func tryExtensions(ctx context.Context, cp *controlplane.ControlPlane, log *zap.Logger) {
	began := time.Now()
	servers, err := cp.Operator.Servers(ctx)
	for _, s := range servers {
		trials, one := cp.Operator.QualifyExtensions(ctx, s.ID)
		for _, q := range trials {
			log.Info("an extension was tried", zap.String("extension", string(q.Extension)), zap.String("version", q.Version),
				zap.Bool("qualified", q.Qualified), zap.String("message", q.Message))
		}
		err = errors.Join(err, one)
	}
	switch {
	case ctx.Err() != nil: // the host stops
	case err != nil:
		log.Warn("not all extensions could be tried; pgherd admin extensions qualify tries again", zap.Error(err))
	default:
		log.Info("all extensions were tried", zap.Duration("took", time.Since(began)))
	}
}
