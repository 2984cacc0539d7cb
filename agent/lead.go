package agent

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/setup"
)

// lead takes charge, prepares, and watches until ctx ends.
func (a *Agent) lead(ctx context.Context) error {
	if err := a.checkFloors(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	leader, err := a.takeCharge(ctx)
	if leader == nil {
		return err
	}
	defer leader.Release()
	defer a.inCharge.Store(false)
	if err := a.confirmArchive(ctx); err != nil {
		return err
	}
	if err := a.untilDone(ctx, "preparing", a.prepare); err != nil {
		return nil // ctx has ended
	}
	a.inCharge.Store(true)
	close(a.started)
	a.log.Info("this agent is in charge of the server")
	return a.untilReplaced(ctx, func(ctx context.Context) error {
		a.beginUpkeep(ctx)
		return leader.Watch(ctx, a.charge.note)
	})
}

// takeCharge returns nil if ctx ended first, or with a *ledger.HeldError where another agent keeps the charge.
func (a *Agent) takeCharge(ctx context.Context) (leader *ledger.Leader, err error) {
	var held *ledger.HeldError
	_ = a.untilDone(ctx, "taking charge", func(ctx context.Context) (err error) {
		if leader, err = a.postgres.Lead(ctx); errors.As(err, &held) {
			return nil // it is not tried again
		}
		return err
	})
	if held != nil {
		return nil, held
	}
	return leader, nil
}

// takeOver ends a predecessor's dumps and restores, then removes the files that they left unfinished.
func (a *Agent) takeOver(ctx context.Context) error {
	if err := a.copies.Server.EndPredecessor(ctx); err != nil {
		return err
	}
	if err := a.files.Sweep(); err != nil {
		return err
	}
	return a.prover.Forget(ctx)
}

// prepare ends what a predecessor left at work, and writes PgBouncer's files. PgBouncer need not run yet.
func (a *Agent) prepare(ctx context.Context) error {
	if err := a.takeOver(ctx); err != nil {
		return err
	}
	if err := errors.Join(a.admitted.Load(ctx), a.lines.Load(ctx)); err != nil {
		return err
	}
	if err := a.forwards.Load(ctx); err != nil {
		return err
	}
	err := a.pooler.Sync(ctx, a.ledger.PoolerState)
	if errors.Is(err, pooler.ErrUnreachable) {
		a.poolerChanged(err)
		return nil
	}
	return err
}

const retryPause = time.Second

// untilDone retries until it works or ctx ends.
func (a *Agent) untilDone(ctx context.Context, what string, fn func(context.Context) error) error {
	for {
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		err := fn(limited)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err = setup.Explained(err)
		a.charge.note(err)
		if err == nil {
			return nil
		}
		a.seldom.Warn(a.log, what+": "+err.Error(), what, zap.Error(err))
		a.lockedOut(ctx, err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryPause):
		}
	}
}

// lockedTime is how long a start may fail because no lock is left, before it makes room. The guard of an agent in charge needs
// less.
const lockedTime = 10 * time.Second

// lockedOut makes room where a customer holds the whole table of locks. Then PostgreSQL lets nobody in any more, not even a
// superuser who could see whose the locks are, and that lasts as long as the customer's session: so all clients of PgBouncer are
// closed.
func (a *Agent) lockedOut(ctx context.Context, err error) {
	switch {
	case pg.State(err) != pg.OutOfMemory:
		a.lockedSince = time.Time{}
		return
	case a.lockedSince.IsZero():
		a.lockedSince = time.Now()
	}
	if time.Since(a.lockedSince) < lockedTime {
		return
	}
	a.lockedSince = time.Time{}
	closed, err := a.pooler.CloseAll(ctx)
	a.log.Warn("all clients of PgBouncer were closed, since PostgreSQL has no lock left for a log-in",
		zap.Int("clients", closed), zap.Error(err))
}
