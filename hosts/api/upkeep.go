package api

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/repeat"
)

// chore is done every so often, and a last time when the host stops. What it cannot store is lost.
type chore struct {
	name   string
	every  time.Duration
	work   func(ctx context.Context, last bool) error
	failed string
}

func upkeep(a *access.Access) []chore {
	return []chore{
		{
			"key usage", 5 * time.Second, func(ctx context.Context, _ bool) error { return a.FlushUsed(ctx) },
			"the last use of keys could not be stored",
		},
		{"rate leases", time.Second, a.ReturnLeases, "leases of rate limits could not be given back"},
	}
}

const choreLimit = 5 * time.Second

func (c chore) run(ctx context.Context, log *zap.Logger) {
	failures := repeat.New(time.Now)
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			last = true
		}
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), choreLimit)
		if err := c.work(bounded, last); err == nil {
			failures.Ended("")
		} else if worth, held := failures.Failed(""); worth {
			log.Warn(c.failed, zap.Int("repeated", held), zap.Error(err))
		}
		cancel()
	}
}
