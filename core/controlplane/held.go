package controlplane

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// held is an operation under lease. It renews the lease while the flow runs; when the lease is lost, its context ends.
type held struct {
	*base
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	op      operation.Operation
	reached bool         // a command may have been delivered under this lease
	cause   *fault.Error // why it failed, with details that its record does not keep
}

func (w *Worker) hold(ctx context.Context, o operation.Operation) *held {
	h := &held{base: w.base, op: o}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	h.done.Go(h.renew)
	return h
}

// release stops the renewal. The lease ends with a final status, by putDown, or by expiring.
func (h *held) release() {
	h.cancel(nil)
	h.done.Wait()
}

func (h *held) renew() {
	tick := time.NewTicker(h.LeaseHold / 3)
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
		}
		err := h.save(h.ctx, func(o *operation.Operation) {
			until := h.Clock.Now().Add(h.LeaseHold)
			o.Until = &until
		}, nil)
		if errors.Is(err, ports.ErrLeaseLost) || err != nil && !h.alive() {
			h.cancel(ports.ErrLeaseLost)
			return
		}
	}
}

// operation returns the operation as last saved.
func (h *held) operation() operation.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.op
}

// alive reports whether the lease still runs by this process's clock.
func (h *held) alive() bool {
	o := h.operation()
	return o.Until != nil && h.Clock.Now().Before(*o.Until)
}

// fence returns what lets the agent refuse this worker once its lease is lost. It returns ErrLeaseLost if the loss is known
// here already, as after a long suspension.
func (h *held) fence() (ports.Fence, error) {
	if !h.alive() || h.operation().Status.Final() {
		return ports.Fence{}, ports.ErrLeaseLost
	}
	o := h.operation()
	return ports.Fence{OperationID: o.ID, Epoch: o.Epoch}, nil
}

// save changes the operation under its epoch, and whatever else belongs to the same step, in one transaction. ErrLeaseLost:
// nothing was written, because another worker has the operation.
func (h *held) save(
	ctx context.Context, change func(*operation.Operation), also func(context.Context, ports.Tx) error,
) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.op.Status.Final() {
		return ports.ErrLeaseLost
	}
	next := h.op
	change(&next)
	err := h.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if also == nil {
			return tx.Operations().SaveLeased(ctx, next)
		}
		// The database is locked before its operation, as everywhere, to avoid deadlocks.
		if _, err := tx.Databases().Lock(ctx, next.DatabaseID); err != nil && !errors.Is(err, ports.ErrNoRow) {
			return err
		}
		if err := tx.Operations().SaveLeased(ctx, next); err != nil {
			return err
		}
		return also(ctx, tx)
	})
	if err == nil {
		h.op = next
	}
	return err
}

// unchanged is the change of a save that leaves the operation as it is.
func unchanged(*operation.Operation) {}

// progress stores the progress of the work. Making progress resets the count of attempts.
func (h *held) progress(ctx context.Context, stage string, percent int) error {
	o := h.operation()
	if o.Stage == stage && o.Progress == percent {
		return nil
	}
	return h.save(ctx, func(o *operation.Operation) {
		o.Stage, o.Progress, o.Attempts = stage, max(o.Progress, percent), 1
	}, nil)
}

// ending is how an operation becomes final.
type ending struct {
	on     operation.Event
	result []byte       // of Succeed
	cause  *fault.Error // of Fail
	also   func(context.Context, ports.Tx) error
}

// finish makes the operation final: status, event and also's writes commit in one transaction.
func (h *held) finish(ctx context.Context, databaseName string, e ending) error {
	now := h.Clock.Now()
	var final operation.Operation
	var refused error
	err := h.save(ctx, func(o *operation.Operation) {
		cell, err := operation.Transitions.Decide(o.Status, e.on)
		if err != nil {
			refused = err
			return
		}
		o.Status, o.FinishedAt, o.Until, o.Result = cell.Next, &now, nil, e.result
		o.Stage = operation.StageFinished
		if o.Status == operation.Succeeded {
			o.Progress, o.ErrorCode, o.ErrorText = 100, "", ""
		}
		if e.cause != nil {
			o.ErrorCode, o.ErrorText = e.cause.Code, e.cause.Message
		}
		final = *o
	}, func(ctx context.Context, tx ports.Tx) error {
		if refused != nil {
			return refused
		}
		if err := h.emit(ctx, tx, final, databaseName, now); err != nil || e.also == nil {
			return err
		}
		return e.also(ctx, tx)
	})
	if err == nil {
		h.cause = e.cause
		h.record("operation."+string(final.Status), errOrNil(e.cause))
	}
	return err
}

// emit adds the event of a final operation to the outbox.
func (b *base) emit(ctx context.Context, tx ports.Tx, o operation.Operation, name string, now time.Time) error {
	payload, ok := event.Of(o, name, now)
	if !ok {
		return nil
	}
	return tx.Outbox().Add(ctx, ports.OutboxEvent{
		ID: newID[id.EventID](b.Entropy), AccountID: o.AccountID, DatabaseID: o.DatabaseID, OperationID: o.ID,
		Name: payload.Event, Payload: operation.Encode(payload), CreatedAt: now,
	})
}

// putDown returns the lease, so that the operation is claimed again after a pause. It works even after the flow's context has
// ended.
func (h *held) putDown(pause time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), 5*time.Second)
	defer cancel()
	return h.save(ctx, func(o *operation.Operation) {
		o.Until = nil
		o.NotBefore = h.Clock.Now().Add(pause)
	}, nil)
}

// sent remembers whether a command may have reached the agent, and passes the command's error on.
func (h *held) sent(err error) error {
	if !errors.Is(err, ports.ErrAgentUnreachable) {
		h.reached = true
	}
	return err
}

// untouched reports whether the agent has certainly never heard of the operation: this is its first lease, and no command
// of it was ever delivered.
func (h *held) untouched(err error) bool {
	return errors.Is(err, ports.ErrAgentUnreachable) && !h.reached && h.operation().Epoch == 1
}

func (h *held) record(what string, err error) {
	o := h.operation()
	h.Journal.Record(context.WithoutCancel(h.ctx), ports.JournalEvent{
		What: what, DatabaseID: o.DatabaseID, OperationID: o.ID, Kind: string(o.Kind), RequestID: o.RequestID,
		Epoch: o.Epoch, Err: err,
	})
}
