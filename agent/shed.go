package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/pooler"
)

// ClientCount is what the metrics say of PgBouncer's clients.
type ClientCount struct {
	// Now is how many clients PgBouncer had when the agent last looked, which it does every second at least once it is in charge.
	Now int64
	// Limit is how many it admits.
	Limit int64
	// Idle and Waiting are how many this agent has ended, in either state, to make room for others; Memory how many for what they
	// may have held of PgBouncer's memory.
	Idle, Waiting, Memory int64
	// MemoryLimit is how many bytes PgBouncer may have before that.
	MemoryLimit int64
}

// clients keeps a ClientCount.
type clients struct{ now, idle, waiting atomic.Int64 }

// Clients counts PgBouncer's clients.
func (a *Agent) Clients() ClientCount {
	return ClientCount{
		Now: a.clients.now.Load(), Limit: int64(a.config.Pooler.MaxClients),
		Idle: a.clients.idle.Load(), Waiting: a.clients.waiting.Load(), Memory: a.memory.Ended(), MemoryLimit: a.config.PoolerMemory,
	}
}

const (
	// shedTime bounds one round. Ending a third of 10,000 clients takes a second or two.
	shedTime = 30 * time.Second
	// shedPause is short, because those that were ended may come back at once, and others may fill what is left.
	shedPause = 100 * time.Millisecond
	// watched is how many percent of the limit there are when the next look comes after shedPause. All that is left above it takes
	// longer to fill than watchPause, also where the limit is a tenth of the usual one.
	watched = 25
)

// pauseAfter is how long to wait for the next look.
func pauseAfter(load pooler.Load, err error) time.Duration {
	if err == nil && (len(load.Ended) > 0 || load.Clients > load.Limit*watched/100) {
		return shedPause
	}
	return watchPause
}

// shed makes room in PgBouncer while accounts hold more clients than their share and little room is left, until ctx ends.
func (a *Agent) shed(ctx context.Context) {
	failed := false
	for {
		limited, cancel := context.WithTimeout(ctx, shedTime)
		load, err := a.pooler.Shed(limited, a.databases.Holdings)
		cancel()
		if ctx.Err() != nil {
			return
		}
		a.clients.now.Store(int64(load.Clients))
		a.note(load)
		// Another part says that PgBouncer does not answer.
		if err != nil && !failed && !errors.Is(err, pooler.ErrUnreachable) {
			a.log.Error("no room could be made in PgBouncer", zap.Error(err))
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(pauseAfter(load, err)):
		}
	}
}

// note counts and logs whose clients were ended.
func (a *Agent) note(load pooler.Load) {
	for _, e := range load.Ended {
		a.clients.idle.Add(int64(e.Idle))
		a.clients.waiting.Add(int64(e.Waiting))
		a.seldom.Warn(a.log, "shed "+e.Database,
			"clients of an account that holds more than its share were ended, to make room in PgBouncer",
			zap.String("account", e.Account), zap.String("database", e.Database), zap.Int("idle", e.Idle),
			zap.Int("waiting", e.Waiting), zap.Int("clients", load.Clients), zap.Int("limit", load.Limit))
	}
}
