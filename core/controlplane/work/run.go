package work

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// idlePoll is how long a worker waits before it looks again when nothing woke it: notifications can be lost.
const idlePoll = time.Second

// Workers are how many operations a process works on at the same time: in all, of one account, and on one server. The zero value
// of the latter two means half of all, and at least one.
type Workers struct{ All, PerAccount, PerServer int }

// Run claims operations and runs their steps until the context ends. It returns when all its leases have been returned:
// another worker can claim unfinished work at once.
func (e *Engine) Run(ctx context.Context, n ports.Notifier, w Workers) {
	e.load.limit(w)
	var running sync.WaitGroup
	defer running.Wait()
	wake, stop := n.Wake()
	defer stop()
	wakeHere, stopHere := e.idle.Wake()
	defer stopHere()
	tick := time.NewTicker(idlePoll)
	defer tick.Stop()
	free := make(chan struct{}, w.All)
	for ctx.Err() == nil {
		free <- struct{}{}
		o, leave, err := e.claim(ctx)
		if err == nil {
			running.Go(func() {
				e.bounded(ctx, o)
				leave()
				<-free
				e.idle.WakeAll() // there may be work of the account or on the server that had all the workers it may have
			})
			continue
		}
		<-free
		if !errors.Is(err, ports.ErrNoRow) && ctx.Err() == nil {
			e.Journal.Log(ctx, ports.JournalEvent{What: "queue.unreadable", Err: err})
		}
		select {
		case <-wake:
		case <-wakeHere:
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// RunNext claims one operation and runs it as far as possible for now. It reports false when none was claimable.
func (e *Engine) RunNext(ctx context.Context) (worked bool, err error) {
	o, leave, err := e.claim(ctx)
	switch {
	case errors.Is(err, ports.ErrNoRow):
		return false, nil
	case err != nil:
		return false, err
	}
	defer leave()
	e.bounded(ctx, o)
	return true, nil
}

// bounded runs a claimed operation for one StepTime at most. The journal and the operation itself tell how it went.
func (e *Engine) bounded(ctx context.Context, o operation.Operation) {
	stepping, cancel := context.WithTimeout(ctx, e.StepTime)
	defer cancel()
	_ = e.work(e.hold(stepping, o), e.kinds[o.Kind].step, ctx.Err)
	e.load.answered(o.ServerID, !errors.Is(stepping.Err(), context.DeadlineExceeded))
}

// claim takes the operation whose turn it is, and counts it as load until leave is called.
func (e *Engine) claim(ctx context.Context) (o operation.Operation, leave func(), err error) {
	if err := e.May(ctx); err != nil {
		return o, nil, err
	}
	accounts, servers := e.load.full()
	if o, err = e.take(ctx, ports.OperationClaim{NotOf: accounts, NotOn: servers}); err != nil {
		return o, nil, err
	}
	return o, e.load.enter(o.AccountID, o.ServerID), nil
}

// take claims an operation of the kinds that this process knows. What a claim notes that finds none is committed: otherwise each
// further one would have to find it out again.
func (e *Engine) take(ctx context.Context, wanted ports.OperationClaim) (o operation.Operation, err error) {
	var none error
	err = e.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		o, err = e.takeIn(ctx, tx, wanted)
		if none = nil; errors.Is(err, ports.ErrNoRow) {
			none, err = err, nil
		}
		return err
	})
	return o, cmp.Or(err, none)
}

func (e *Engine) takeIn(
	ctx context.Context, tx ports.Tx, wanted ports.OperationClaim,
) (operation.Operation, error) {
	wanted.Owner, wanted.Hold, wanted.Kinds, wanted.Now = e.Instance, e.LeaseHold, e.names, e.Clock.Now()
	return tx.Operations().ClaimNext(ctx, wanted)
}

// RunNow works on an operation that the caller has just committed as its own, for at most so long, even if the caller
// disconnects. It returns the *fault.Error of a failed operation, and another error if the outcome is not known yet.
func (e *Engine) RunNow(ctx context.Context, o operation.Operation, most time.Duration) error {
	e.Reserved(o.Kind)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	return e.work(e.hold(ctx, o), e.kinds[o.Kind].step, func() error { return nil })
}

// Advance does the next steps of an operation that its callers drive, for at most so long, even if the caller disconnects, and
// returns it as it is then. Such a kind puts its operations down for as long as its callers may stay away; after that a worker
// goes on, and the step sees that no caller drives it. ErrNoRow: the operation is final, or somebody works on it.
func (e *Engine) Advance(ctx context.Context, op id.OperationID, most time.Duration) (operation.Operation, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	o, err := e.take(ctx, ports.OperationClaim{Only: op})
	if err != nil {
		return o, err
	}
	l := e.hold(ctx, o)
	l.byCaller = true
	err = e.work(l, e.kinds[o.Kind].step, func() error { return nil })
	if errors.Is(err, errAgain) {
		err = nil
	}
	return l.Operation(), err
}

// work does steps of a claimed operation until it is final or is put down. stopping reports whether the worker is to end.
func (e *Engine) work(l *Lease, step stepOf, stopping func() error) (err error) {
	defer func() { l.ended(string(l.Operation().Status), err != nil && !errors.Is(err, errAgain)) }()
	o := l.Operation()
	if o.Epoch == 1 || o.Attempts > 1 { // not each time that a running job is asked how far it is
		e.log(l.ctx, "operation.claimed", o, nil)
	}
	next, err := l.steps(step)
	l.release() // before putDown: a renewal after it would take the lease back
	switch {
	case err == nil && next.done:
		return l.outcome()
	case err == nil:
		return errors.Join(errAgain, l.putDown(next.after, 0))
	case errors.Is(err, ports.ErrLeaseLost), errors.Is(context.Cause(l.ctx), ports.ErrLeaseLost),
		command.RefusedFor(err, command.ReasonFenced): // the agent has received a command under a newer lease
		l.Log("operation.lease_lost", err)
		return ports.ErrLeaseLost
	case stopping() != nil:
		l.forget()
		l.Log("operation.put_down", err)
		return errors.Join(err, l.putDown(0, l.Operation().Attempts))
	default:
		l.forget()
		l.Log("operation.unconfirmed", err)
		attempts := l.Operation().Attempts
		return errors.Join(err, l.putDown(cmp.Or(next.after, operation.Backoff(attempts)), attempts))
	}
}

// stepOf does a step under a lease.
type stepOf = func(context.Context, *Lease) (Next, error)

// errAgain means that an operation goes on later.
var errAgain = errors.New("work: the operation goes on later")

// steps runs one step after the other until one asks for a pause, or the time is up.
func (l *Lease) steps(step stepOf) (Next, error) {
	for l.ctx.Err() == nil {
		next, err := step(l.ctx, l)
		if err != nil || next.done || next.after > 0 {
			return next, err
		}
	}
	return Next{}, context.Cause(l.ctx)
}
