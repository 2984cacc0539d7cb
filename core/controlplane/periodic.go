package controlplane

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

const (
	// roundEvery is how often most tasks look for work.
	roundEvery = 2 * time.Second
	// roundBatch bounds a round of what needs no server.
	roundBatch = 100
	// roundMost bounds how much work for all servers together a round looks at. It is far more than a dead server usually has
	// waiting, so that the others' work is seen too.
	roundMost = 100 * roundBatch
)

// registerRounds adds the tasks that belong to no capability's own file.
func (b *base) registerRounds() {
	rounds.Register(b.rounds, rounds.Task{Name: "rate buckets", Every: roundEvery, Do: func(ctx context.Context) error {
		return b.Admissions.Sweep(ctx, b.Clock.Now())
	}})
	rounds.Register(b.rounds, rounds.Task{Name: "old events", Every: roundEvery, Do: b.forgetEvents})
}

// forgetEvents deletes deliveries that became final webhook.Retention ago, and their events.
func (b *base) forgetEvents(ctx context.Context) error {
	return b.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Outbox().Forget(ctx, b.Clock.Now().Add(-webhook.Retention), roundBatch)
	})
}

func (b *base) due(ctx context.Context, what ports.DueWork, limit int) (list []database.Record, err error) {
	err = b.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		list, err = tx.Databases().Due(ctx, what, b.Clock.Now(), limit)
		return err
	})
	return list, err
}

// ofRecord is the server that work on a database asks, and its account.
func ofRecord(r database.Record) (id.ServerID, id.AccountID) { return r.ServerID, r.AccountID }

// reachable asks a server for a sign of life.
func (b *base) reachable(ctx context.Context, s id.ServerID) error {
	agent, err := b.agentOf(ctx, s)
	if err != nil {
		return err
	}
	_, err = ports.Ask(ctx, agent, command.AskCapabilities{})
	return err
}

// errSettled means that another process has done the work.
var errSettled = errors.New("already done")

// isSettled reports whether an error means that nothing is left to do: another process did it, or the database's state forbids
// it now.
func isSettled(err error) bool {
	return errors.Is(err, errSettled) || errors.Is(err, ports.ErrNoRow) || fault.Has(err, fault.DatabaseStateConflict)
}

// unlessSettled records the error of a piece of periodic work that is left to do, and returns it.
func (b *base) unlessSettled(ctx context.Context, what string, db id.DatabaseID, err error) error {
	if err == nil || isSettled(err) {
		return nil
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) { // the host is not stopping
		b.journal(ctx, what, db, err)
	}
	return err
}
