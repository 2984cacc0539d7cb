package controlplane_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/retention"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/ports"
)

// slowStore takes its time for each transaction.
type slowStore struct {
	ports.Store
	clock *fakeclock.Clock
}

func (s slowStore) Update(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	defer s.clock.Advance(time.Second)
	return s.Store.Update(ctx, fn)
}

// More than a transaction deletes go in one round, and where that takes long, the rest in the next.
func TestOldEntriesOfTheLogGo(t *testing.T) {
	w := newWorld(t)
	db, entropy := w.made("shop").Record.ID, fakeentropy.Seeded(7)
	const old = 16_000                                                         // in 32 transactions
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error { // which runs twice, with other IDs
		for range old {
			e := audit.Entry{
				ID: id.FromBytes[id.AuditID](entropy.UUID()), At: w.clock.Now(), DatabaseID: db, Actor: audit.System, Action: "tested",
			}
			if err := tx.Audit().Add(ctx, e); err != nil {
				return err
			}
		}
		return nil
	}))
	left := func() (n int) {
		list := must(ports.Read(w.ctx, w.store, func(ctx context.Context, tx ports.Tx) ([]audit.Entry, error) {
			return tx.Audit().List(ctx, db, ports.Page{})
		}))(t)
		for _, e := range list {
			if e.Action == "tested" {
				n++
			}
		}
		return n
	}
	w.clock.Advance(retention.Audit.Bounds().Default)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "in time", left(), old)
	w.clock.Advance(time.Second)
	w.ports.Store = slowStore{w.store, w.clock}
	slow := w.process(quick())
	ok(t, slow.Rounds.Once(w.ctx))
	rest := left() // 1,000, and as many as other entries went before them
	equal(t, "after a slow round", rest > 0 && rest <= 1_100, true)
	ok(t, slow.Rounds.Once(w.ctx))
	equal(t, "after two", left(), 0)
}

// An operation that is gone is as one that never was.
func TestAnOldOperationIsNotFound(t *testing.T) {
	w := newWorld(t)
	o := must(w.Backups.Start(w.ctx, w.reached(w.made("shop").Record.ID)))(t)
	w.work(w.ControlPlane)
	w.backUp(w.reached(w.only().ID))
	w.reachedOperation(o.ID)
	w.clock.Advance(retention.Operations.Bounds().Default + time.Hour)
	ok(t, w.Rounds.Once(w.ctx)) // of which an earlier task removes the backup, which is over, too
	_, err := w.Operations.Reach(w.ctx, w.caller, o.ID, account.See)
	refused(t, err, fault.OperationNotFound)
}
