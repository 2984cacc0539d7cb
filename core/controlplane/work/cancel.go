package work

import (
	"context"

	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Cancel applies a request to cancel an operation whose database and row the caller has locked. One that is queued ends at once,
// and ended is true; of one that runs the next step ends it. DATABASE_STATE_CONFLICT: it is final, or may already have changed
// something.
func (e *Engine) Cancel(
	ctx context.Context, tx ports.Tx, o operation.Operation, databaseName string,
) (now operation.Operation, ended bool, err error) {
	status, err := e.Spec(o.Kind).DecideCancel(o)
	if err != nil || o.Status == operation.Canceled {
		return o, false, err
	}
	o.CancelRequested = true
	if status != operation.Canceled {
		o.NotBefore = e.Clock.Now() // it may have been put down for as long as its callers may stay away
		return o, false, tx.Operations().RequestCancel(ctx, o)
	}
	at := e.Clock.Now()
	o.Status, o.FinishedAt, o.Stage, o.SealedInput = status, &at, operation.StageFinished, nil
	if err := tx.Operations().RequestCancel(ctx, o); err != nil {
		return o, false, err
	}
	if withdraw := e.kinds[o.Kind].withdraw; withdraw != nil {
		if err := withdraw(ctx, tx, o); err != nil {
			return o, false, err
		}
	}
	return o, true, e.emit(ctx, tx, o, databaseName, at)
}
