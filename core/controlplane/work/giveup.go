package work

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// GiveUp has an operation ended on an operator's order, for at most so long, and returns it as it is then: it may have been too
// late, so that it succeeds or goes on. also is written in the transaction that takes it. DATABASE_STATE_CONFLICT: a worker has
// it, or it has ended. Every other error leaves it open, for workers to go on with.
func (e *Engine) GiveUp(
	ctx context.Context, op id.OperationID, by operation.Order, most time.Duration, also func(context.Context, ports.Tx) error,
) (operation.Operation, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	var o operation.Operation
	err := e.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if o, err = e.takeIn(ctx, tx, ports.OperationClaim{Only: op}); err != nil {
			return err
		}
		return also(ctx, tx)
	})
	k := e.kinds[o.Kind]
	switch {
	case errors.Is(err, ports.ErrNoRow), err == nil && k.giveUp == nil:
		return o, fault.New(fault.DatabaseStateConflict, "a worker has taken the operation, or it has ended, just now")
	case err != nil:
		return o, err
	}
	l, ordered := e.hold(ctx, o), false
	err = e.work(l, func(ctx context.Context, l *Lease) (Next, error) {
		if ordered {
			return k.step(ctx, l)
		}
		ordered = true
		return k.giveUp(ctx, l, by)
	}, func() error { return nil })
	now := l.Operation()
	if now.Status.Final() || errors.Is(err, errAgain) {
		err = nil
	}
	return now, err
}
