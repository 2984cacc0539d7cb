package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Worker does the work that operations stand for. Any number of workers, in any number of processes, share the queue: leases
// and their epochs ensure that no operation is run twice at a time, and that a worker that was suspended beyond the end of its
// lease neither writes nor reaches the agent.
type Worker struct{ *base }

// flow does the work of one kind. It returns nil when the operation is final, and an error when its outcome is not known yet:
// then the operation is claimed again after a pause.
type flow func(ctx context.Context, h *held) error

func newWorker(b *base) *Worker {
	return &Worker{base: b}
}

// idlePoll is how long a worker waits before it looks again when nothing woke it: notifications can be lost.
const idlePoll = time.Second

// Run claims and runs operations until the context ends, up to parallel of them at a time. It returns when all leases in hand
// have been returned: another worker can claim unfinished work at once.
func (w *Worker) Run(ctx context.Context, n ports.Notifier, parallel int) {
	var running sync.WaitGroup
	for range parallel {
		running.Go(func() { w.loop(ctx, n) })
	}
	running.Wait()
}

func (w *Worker) loop(ctx context.Context, n ports.Notifier) {
	wake, stop := n.Wake()
	defer stop()
	tick := time.NewTicker(idlePoll)
	defer tick.Stop()
	for ctx.Err() == nil {
		worked, err := w.RunNext(ctx)
		if worked {
			continue
		}
		if err != nil && ctx.Err() == nil {
			w.Journal.Record(ctx, ports.JournalEvent{What: "queue.unreadable", Err: err})
		}
		select {
		case <-wake:
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// RunNext claims one operation and runs it as far as possible for now. It reports false when none was claimable.
func (w *Worker) RunNext(ctx context.Context) (worked bool, err error) {
	var o operation.Operation
	err = w.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		o, err = tx.Operations().ClaimNext(ctx, w.Instance, w.Clock.Now(), w.LeaseHold)
		return err
	})
	if errors.Is(err, ports.ErrNoRow) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_ = w.run(ctx, o) // the journal and the operation itself tell how it went
	return true, nil
}

// newOperation is a queued operation that nobody has claimed.
func (b *base) newOperation(r database.Record, kind operation.Kind, input json.RawMessage) operation.Operation {
	now := b.Clock.Now()
	return operation.Operation{
		ID: newID[id.OperationID](b.Entropy), AccountID: r.AccountID, DatabaseID: r.ID, Kind: kind,
		Status: operation.Queued, Stage: operation.StageQueued, Input: input,
		CreatedAt: now, Lease: operation.Lease{NotBefore: now},
	}
}

// ownOperation is an operation for which the caller waits: it is created as claimed by this process.
func (b *base) ownOperation(c Caller, r database.Record, kind operation.Kind, input json.RawMessage) operation.Operation {
	o := b.newOperation(r, kind, input)
	o.Actor, o.RequestID = c.Actor(), c.RequestID
	return o.Claimed(b.Instance, o.CreatedAt, b.LeaseHold)
}

// runNow runs an operation that the caller has just claimed, for at most Config.CreateWait, even if the caller disconnects. It
// returns the *fault.Error of a failed operation, and another error if the outcome is not known yet.
func (w *Worker) runNow(ctx context.Context, o operation.Operation) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.CreateWait)
	defer cancel()
	return w.run(ctx, o)
}

// run works on a claimed operation, and returns its lease if the outcome is not known yet.
func (w *Worker) run(ctx context.Context, o operation.Operation) error {
	h := w.hold(ctx, o)
	h.record("operation.claimed", nil)
	err := w.flow(o.Kind)(h.ctx, h)
	h.release() // before putDown: a renewal after it would take the lease back
	switch {
	case err == nil:
		return h.outcome()
	case errors.Is(err, ports.ErrLeaseLost), errors.Is(context.Cause(h.ctx), ports.ErrLeaseLost), agentSaysLost(err):
		h.record("operation.lease_lost", err)
		return ports.ErrLeaseLost
	default:
		h.record("operation.unconfirmed", err)
		return errors.Join(err, h.putDown(pause(ctx, h)))
	}
}

// pause is how long an operation waits before it is claimed again: not at all if the worker is stopping.
func pause(ctx context.Context, h *held) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	return operation.Backoff(h.operation().Attempts)
}

func (w *Worker) flow(k operation.Kind) flow {
	switch k { //nolint:exhaustive // the other kinds have no route yet that queues them
	case operation.Create:
		return w.create
	case operation.Lifecycle:
		return w.lifecycle
	case operation.Backup:
		return w.backup
	}
	return func(context.Context, *held) error {
		return fault.New(fault.InternalError, "this program has no flow for %s operations", k)
	}
}

// site is the place of an operation's work: its database, and the agent of its server.
func (w *Worker) site(ctx context.Context, o operation.Operation) (record database.Record, agent ports.Agent, err error) {
	err = w.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		record, err = ofOperation(ctx, tx, o)
		return err
	})
	if err == nil {
		agent, err = w.agentOf(ctx, record.ServerID)
	}
	return record, agent, err
}

// ofOperation reads an operation's database as its owner sees it. It needs no lock: the lease excludes other work.
func ofOperation(ctx context.Context, tx ports.Tx, o operation.Operation) (database.Record, error) {
	owner := ports.Viewer{AccountID: o.AccountID, Scope: account.FullAccount}
	record, _, err := tx.Databases().Reach(ctx, owner, o.DatabaseID)
	return record, err
}

// agentSaysLost reports whether the agent has received a command under a newer lease.
func agentSaysLost(err error) bool { return ports.RefusedFor(err, ports.ReasonFenced) }
