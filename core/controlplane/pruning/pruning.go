// Package pruning deletes what has been over for long enough, see package retention of the core.
package pruning

import (
	"context"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/retention"
	"github.com/pgherd/pgherd/ports"
)

const (
	// every is how often entries are checked. Those that are old but still needed are checked each time.
	every = 10 * time.Minute
	// batch bounds a transaction.
	batch = 500
	// most is for how long a round goes on, half of what it may: what is left is checked in the next one. So a host keeps up with
	// every installation that it can work for, and has the metadata to itself for a twentieth of the time at most.
	most = rounds.DefaultLimit / 2
)

// Pruning is a kind's periodic task.
type Pruning struct {
	base *base.Base
	kind retention.Kind

	mu    sync.Mutex
	after *ports.Position // where the last round ended before it had checked everything
}

// Register registers a periodic task for each kind.
func Register(p *base.Base) {
	for _, k := range retention.Pruned() {
		pruning := &Pruning{base: p, kind: k}
		rounds.Register(p.Rounds, rounds.Task{Name: "old " + string(k), Every: every, Do: pruning.round})
	}
}

// round continues where the last one ended. Several processes may check the same entries.
func (p *Pruning) round(ctx context.Context, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	began, before := p.base.Clock.Now(), now.Add(-p.base.Retention.Of(p.kind))
	for p.base.Clock.Now().Sub(began) < most {
		var f ports.Forgotten
		err := p.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
			f, err = tx.Retention().Forget(ctx, p.kind, before, p.after, batch)
			return err
		})
		if err != nil {
			return err
		}
		if p.after = f.Last; f.Looked < batch {
			p.after = nil
			return nil
		}
	}
	return nil
}
