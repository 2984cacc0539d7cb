package histories

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// queueBug is what is wrong with a store's queue.
type queueBug struct {
	anyEpoch  bool          // a save is admitted whatever its epoch
	early     time.Duration // claims look into the future
	unlimited bool          // claims do not hear which accounts and servers have enough
	greedy    bool          // of the accounts that have something due, the same one is served each time
}

// alteredQueue is a store with one.
type alteredQueue struct {
	ports.Store
	bug queueBug
}

// Update implements ports.Store.
func (s alteredQueue) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, alteredTx{tx, s.bug}) })
}

type alteredTx struct {
	ports.Tx
	bug queueBug
}

func (t alteredTx) Operations() ports.Operations { return alteredOperations{t.Tx.Operations(), t.bug} }

type alteredOperations struct {
	ports.Operations
	bug queueBug
}

func (o alteredOperations) SaveLeased(ctx context.Context, saved operation.Operation) error {
	if o.bug.anyEpoch {
		now, err := o.Get(ctx, saved.ID)
		if err != nil {
			return err
		}
		saved.Epoch = now.Epoch
	}
	return o.Operations.SaveLeased(ctx, saved)
}

func (o alteredOperations) ClaimNext(ctx context.Context, c ports.OperationClaim) (operation.Operation, error) {
	c.Now = c.Now.Add(o.bug.early)
	if o.bug.unlimited {
		c.NotOf, c.NotOn = nil, nil
	}
	if !o.bug.greedy {
		return o.Operations.ClaimNext(ctx, c)
	}
	open, err := o.Find(ctx, ports.OperationFilter{}, ports.Page{Limit: 100})
	if err != nil {
		return operation.Operation{}, err
	}
	slices.SortFunc(open, func(a, b ports.FoundOperation) int { return cmp.Compare(a.AccountID, b.AccountID) })
	others := slices.CompactFunc(open, func(a, b ports.FoundOperation) bool { return a.AccountID == b.AccountID })
	for len(others) > 0 {
		others = others[1:]
		one := c
		for _, other := range others {
			one.NotOf = append(slices.Clone(one.NotOf), other.AccountID)
		}
		if taken, err := o.Operations.ClaimNext(ctx, one); !errors.Is(err, ports.ErrNoRow) {
			return taken, err
		}
	}
	return operation.Operation{}, ports.ErrNoRow
}
