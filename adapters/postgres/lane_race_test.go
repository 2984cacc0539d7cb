package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/ports"
)

// An account's lanes, and the account among those that have any, come and go all the time, while claims find them exhausted and
// remove them: none of the account's operations is forgotten.
func TestNoOperationIsForgotten(t *testing.T) {
	const databases, rounds, workers = 4, 40, 6
	db := migrated(t)
	populate(t, db, databases)
	stores, entropy, now := []ports.Store{open(t, db), open(t, db)}, fakeentropy.New(), time.Unix(1, 0).UTC()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var left, more atomic.Int64 // operations to be ended, and to be added
	left.Store(databases * rounds)
	more.Store(databases * (rounds - 1))
	kinds := []operation.Kind{"backup", "lifecycle"}
	work := func(store ports.Store, owner string, at time.Time) error {
		var o operation.Operation
		err := store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
			o, err = tx.Operations().ClaimNext(ctx, ports.OperationClaim{Owner: owner, Now: at, Hold: time.Hour, Kinds: kinds})
			if errors.Is(err, ports.ErrNoRow) {
				return nil // it is committed what the claim has noted
			}
			return err
		})
		if err != nil || o.ID == "" {
			return err
		}
		ended, next := o, o
		ended.Status, ended.FinishedAt = operation.Succeeded, &now
		next.ID, next.Status, next.StartedAt = id.FromBytes[id.OperationID](entropy.UUID()), operation.Queued, nil
		next.Kind, next.Lease = kinds[entropy.UUID()[0]%2], operation.Lease{NotBefore: now}
		adds := more.Add(-1) >= 0
		err = store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
			if err := tx.Operations().SaveLeased(ctx, ended); err != nil || !adds {
				return err
			}
			return tx.Operations().Add(ctx, next)
		})
		if err == nil {
			left.Add(-1)
		}
		return err
	}
	var all sync.WaitGroup
	for n := range workers {
		all.Go(func() {
			for left.Load() > 0 && ctx.Err() == nil {
				if err := work(stores[n%2], fmt.Sprint("worker-", n), now); err != nil && ctx.Err() == nil {
					t.Error(err)
					cancel()
				}
			}
		})
	}
	all.Wait()
	if n := left.Load(); n != 0 {
		t.Errorf("%d operations were never claimed", n)
	}
	if err := work(stores[0], "last", now.Add(2*time.Hour)); err != nil { // which finds the last lanes exhausted
		t.Error(err)
	}
	var lanes int
	const both = "SELECT (SELECT count(*) FROM operation_lanes) + (SELECT count(*) FROM operation_accounts)"
	if err := db.Open(t).QueryRowContext(t.Context(), both).Scan(&lanes); err != nil || lanes != 0 {
		t.Errorf("%d lanes and accounts are left (%v)", lanes, err)
	}
}
