package wiring

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/repeat"
)

const (
	// pingEvery is how often a host asks whether the metadata database answers, and againEvery how often while it does not.
	pingEvery  = 2 * time.Second
	againEvery = time.Second
)

// watchMetadata has the log say that the metadata database is away, where it is, and that it is back, and the metrics whether it
// answers, and requests refused at once while it does not. What else fails meanwhile only follows from that.
func watchMetadata(
	lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, s Settings, r metrics.Registry, store *postgres.Store,
) error {
	var up atomic.Bool
	up.Store(true) // the host has opened it
	place, failures := zap.String("metadata", postgres.Config{URL: s.MetadataURL}.Place()), repeat.New(time.Now)
	ping := func(ctx context.Context) {
		err := store.Watch(ctx)
		if ctx.Err() != nil {
			return
		}
		up.Store(err == nil)
		if err != nil {
			if worth, held := failures.Failed(""); worth {
				log.Warn("the metadata database does not answer", place, zap.Int("repeated", held), zap.Error(err))
			}
		} else if since, times := failures.Ended(""); times > 0 {
			log.Info("the metadata database answers again", place, zap.Duration("after", time.Since(since)))
		}
	}
	Attach(lc, stop, log, Part{Name: "metadata", Run: func(ctx context.Context) error {
		for {
			pause := pingEvery
			if !up.Load() {
				pause = againEvery
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
				ping(ctx)
			}
		}
	}})
	return r.YesOrNo("pgherd_metadata_up",
		"1 if the metadata database answered when this host last asked, which it does every 2 s.", up.Load)
}
