package work

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// restTime is how long an order waits for whoever works on an operation: most steps take less. Of a longer one, and of a worker
// that died, the refusal says until when it has the operation.
const restTime = 10 * time.Second

// Pauses before another look whether somebody still works on an operation.
const (
	firstPause = 10 * time.Millisecond
	mostPause  = 250 * time.Millisecond
)

// AtRest returns an open operation once nobody works on it, for which it waits some seconds at most: workers put operations down
// between any two steps, so an order of an operator need not be repeated because it met one. ErrNoRow: there is none.
// DATABASE_STATE_CONFLICT: it has ended, or a worker has it all the time.
func (e *Engine) AtRest(ctx context.Context, op id.OperationID) (operation.Operation, error) {
	return e.WhenAtRest(ctx, op, func(context.Context, operation.Operation) error { return nil })
}

// WhenAtRest is AtRest, and has an order carried out on the operation then. Where that returns ErrNoRow, a worker was faster, and
// is waited for again. Its other errors are returned.
func (e *Engine) WhenAtRest(
	ctx context.Context, op id.OperationID, carryOut func(context.Context, operation.Operation) error,
) (o operation.Operation, err error) {
	over, refused := time.After(restTime), error(nil)
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		o, err = ports.Read(ctx, e.Store, func(ctx context.Context, tx ports.Tx) (operation.Operation, error) {
			return tx.Operations().Get(ctx, op)
		})
		if err != nil {
			return o, cmp.Or(refused, err)
		}
		if err = o.AtRest(e.Clock.Now()); err == nil {
			if err = carryOut(ctx, o); !errors.Is(err, ports.ErrNoRow) {
				return o, err
			}
			err = fault.New(fault.DatabaseStateConflict, "workers have the operation all the time: try again")
		}
		if o.Status.Final() {
			return o, err
		}
		refused = err
		select {
		case <-time.After(pause):
		case <-over:
			return o, refused
		case <-ctx.Done():
			return o, refused
		}
	}
}

// GiveUp has an operation ended on an operator's order, for at most so long, and returns it as it is then: it may have been too
// late, so that it succeeds or goes on. also is written in the transaction that takes it. DATABASE_STATE_CONFLICT: it has ended,
// or a worker has it for longer than such an order waits, see AtRest. Every other error leaves it open, for workers to go on
// with, and says that the order was not carried out.
func (e *Engine) GiveUp(
	ctx context.Context, op id.OperationID, by operation.Order, most time.Duration, also func(context.Context, ports.Tx) error,
) (operation.Operation, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	var taken operation.Operation
	o, err := e.WhenAtRest(ctx, op, func(ctx context.Context, o operation.Operation) error {
		if e.kinds[o.Kind].giveUp == nil {
			return fault.New(fault.DatabaseStateConflict, "a %s operation cannot be ended by an order", o.Kind)
		}
		return e.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
			if taken, err = e.takeIn(ctx, tx, ports.OperationClaim{Only: op}); err != nil {
				return err
			}
			return also(ctx, tx)
		})
	})
	if err != nil {
		return o, err
	}
	k := e.kinds[taken.Kind]
	l, ordered, done := e.hold(ctx, taken), false, false
	err = e.work(l, func(ctx context.Context, l *Lease) (Next, error) {
		if ordered {
			return k.step(ctx, l)
		}
		ordered = true
		next, err := k.giveUp(ctx, l, by)
		done = err == nil
		return next, err
	}, func() error { return nil })
	now := l.Operation()
	if now.Status.Final() || done || errors.Is(err, errAgain) { // what comes after the order goes on by itself
		err = nil
	}
	return now, err
}
