package work

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Ending is how an operation becomes final.
type Ending struct {
	On           operation.Event
	DatabaseName string          // for the event
	Result       json.RawMessage // of Succeed
	SealedResult []byte          // of Succeed, too; see operation.Operation
	Cause        *fault.Error    // of Fail
	Also         func(context.Context, ports.Tx) error
}

// After is the ending with writes before its others.
func (e Ending) After(first func(context.Context, ports.Tx) error) Ending {
	rest := e.Also
	e.Also = func(ctx context.Context, tx ports.Tx) error {
		if err := first(ctx, tx); err != nil {
			return err
		}
		return rest(ctx, tx)
	}
	return e
}

// Finish makes the operation final: status, event and Also's writes commit in one transaction. The new status is the name of the
// commit in Kind.Commits.
func (l *Lease) Finish(ctx context.Context, e Ending) (Next, error) {
	now := l.engine.Clock.Now()
	final, err := l.Operation().Ended(e.On, now, e.Result, e.Cause)
	if err != nil {
		return Next{}, err
	}
	l.cause, final.SealedResult = e.Cause, e.SealedResult
	err = l.Save(ctx, string(final.Status), func(o *operation.Operation) { *o = final },
		func(ctx context.Context, tx ports.Tx) error {
			if err := l.engine.emit(ctx, tx, final, e.DatabaseName, now); err != nil || e.Also == nil {
				return err
			}
			return e.Also(ctx, tx)
		})
	if err != nil {
		return Next{}, err
	}
	l.Log("operation."+string(final.Status), errOrNil(e.Cause))
	return Done, nil
}

// emit adds the event of a final operation of a public kind to the outbox.
func (e *Engine) emit(ctx context.Context, tx ports.Tx, o operation.Operation, database string, now time.Time) error {
	if !e.Spec(o.Kind).Public {
		return nil
	}
	payload := event.Of(o, database, now)
	return tx.Outbox().Add(ctx, ports.OutboxEvent{
		ID: id.FromBytes[id.EventID](e.Entropy.UUID()), AccountID: o.AccountID, DatabaseID: o.DatabaseID, OperationID: o.ID,
		RequestID: o.RequestID, Name: payload.Event, Payload: operation.Encode(payload), CreatedAt: now,
	})
}

// BeginFailing commits what the operation fails with, while its kind still has something to take back. After a crash the step
// goes on with that, see Failure, and does not try again. stage is one of Kind.Commits.
func (l *Lease) BeginFailing(
	ctx context.Context, stage string, cause *fault.Error, also func(context.Context, ports.Tx) error,
) error {
	l.cause = cause
	return l.Save(ctx, stage, func(o *operation.Operation) { o.Enter(stage, cause) }, also)
}

// Failure is what BeginFailing or Finish has committed; nil if there is nothing.
func (l *Lease) Failure() *fault.Error {
	f := l.Operation().Failure()
	switch {
	case f == nil:
		return nil
	case l.cause != nil:
		return l.cause
	}
	return fault.New(f.Code, "%s", f.Message)
}

// outcome is what the caller of a finished operation gets: nil, or the *fault.Error that it failed with.
func (l *Lease) outcome() error { return errOrNil(l.Failure()) }

func errOrNil(e *fault.Error) error {
	if e == nil {
		return nil
	}
	return e
}
