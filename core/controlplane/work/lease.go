package work

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/ports"
)

// Lease is an operation that this process works on. The lease is renewed while steps run; when it is lost, their context ends.
type Lease struct {
	engine   *Engine
	byCaller bool
	ctx      context.Context
	cancel   context.CancelCauseFunc
	done     sync.WaitGroup
	ended    trace.End

	mu        sync.Mutex
	op        operation.Operation // with what a step shows of itself
	saved     operation.Operation // as it was saved last, and no longer queued once an agent is asked
	unsure    bool                // whether that was the last: the reply of a commit was lost
	delivered bool                // a command may have been delivered under this lease
	cause     *fault.Error        // why it failed, with details that its record does not keep
}

func (e *Engine) hold(ctx context.Context, o operation.Operation) *Lease {
	l := &Lease{engine: e, op: o, saved: o}
	ctx, l.ended = e.Tracer.Begin(ctx, trace.Span{
		Name: "operation " + string(o.Kind), At: trace.Joins,
		Request: o.RequestID, Operation: o.ID, Database: o.DatabaseID, Server: o.ServerID,
	})
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	hold := e.holdOf(o.Kind)
	l.done.Go(func() { l.renew(hold) })
	return l
}

// release stops the renewal. The lease ends with a final status, by putDown, or by expiring.
func (l *Lease) release() {
	l.cancel(nil)
	l.done.Wait()
}

func (l *Lease) renew(hold time.Duration) {
	tick := time.NewTicker(hold / 3)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		err := l.prolong(l.ctx, l.engine.Clock.Now().Add(hold))
		if errors.Is(err, ports.ErrLeaseLost) || err != nil && !l.alive() {
			l.cancel(ports.ErrLeaseLost)
			return
		}
	}
}

// Operation returns the operation as last saved. It must not be called by what Save and Finish run in their transaction.
func (l *Lease) Operation() operation.Operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.op
}

// alive reports whether the lease still runs by this process's clock.
func (l *Lease) alive() bool {
	o := l.Operation()
	return o.Until != nil && l.engine.Clock.Now().Before(*o.Until)
}

// ByCaller reports whether a caller drives the operation, and not a worker; see Engine.Advance.
func (l *Lease) ByCaller() bool { return l.byCaller }

// Call makes one call of an agent. The fence lets the agent refuse this worker once its lease is lost; ErrLeaseLost means that
// the loss is known here already, as after a long suspension, and nothing was called. what is one of Kind.Calls.
func (l *Lease) Call(ctx context.Context, what string, call func(context.Context, ports.Fence) error) error {
	l.begin()
	o := l.Operation()
	l.engine.Crash(Before(o.Kind, what))
	if !l.alive() || o.Status.Final() {
		return ports.ErrLeaseLost
	}
	err := call(ctx, ports.Fence{OperationID: o.ID, Epoch: o.Epoch})
	if !ports.NeverHeard(err) {
		l.delivered = true
	}
	l.engine.Crash(After(o.Kind, what))
	return err
}

// begin makes an operation with stages one that is not queued any more, whatever becomes of the step: an agent hears of it.
func (l *Lease) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if begun := l.engine.kinds[l.op.Kind].begun; begun != "" && l.saved.Stage == operation.StageQueued {
		l.saved.Stage = string(begun)
	}
}

// Close has the agent end the operation's work on its server, and undo what is unfinished: the call "close".
func (l *Lease) Close(ctx context.Context, a ports.Agent) error {
	return l.Call(ctx, "close", func(ctx context.Context, f ports.Fence) error { return ports.Close(ctx, a, f) })
}

// Untouched reports whether the agent has certainly never heard of the operation: this is its first lease, and no command of it
// was ever delivered.
func (l *Lease) Untouched(err error) bool {
	return ports.NeverHeard(err) && !l.delivered && l.Operation().Epoch == 1
}

// Save commits a change of the operation under its epoch, and in the same transaction whatever else belongs to it; change and
// also may be nil. ErrLeaseLost: nothing was written, because another worker has the operation. what is one of Kind.Commits.
func (l *Lease) Save(
	ctx context.Context, what string, change func(*operation.Operation), also func(context.Context, ports.Tx) error,
) error {
	kind := l.Operation().Kind
	l.engine.Crash(Before(kind, what))
	err := l.save(ctx, change, also)
	if err == nil {
		l.engine.Crash(After(kind, what))
	}
	return err
}

func (l *Lease) save(
	ctx context.Context, change func(*operation.Operation), also func(context.Context, ports.Tx) error,
) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(ctx, l.op, change, also)
}

// prolong saves until when the lease lasts, and nothing of what the step shows: that may be of a stage that is not entered yet.
func (l *Lease) prolong(ctx context.Context, until time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := l.op
	err := l.write(ctx, l.saved, func(o *operation.Operation) { o.Until = &until }, nil)
	if err == nil {
		l.op = shown
		l.op.Until = &until
	}
	return err
}

// forget drops what a step has shown that came to no end.
func (l *Lease) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.op = l.saved
}

// write saves the operation as it is in from, with a change.
func (l *Lease) write(
	ctx context.Context, from operation.Operation, change func(*operation.Operation), also func(context.Context, ports.Tx) error,
) error {
	if l.saved.Status.Final() {
		return ports.ErrLeaseLost
	}
	var next operation.Operation
	written := false
	err := l.engine.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		written = false
		if also != nil { // The database is locked before its operation, as everywhere, to avoid deadlocks.
			if _, err := tx.Databases().Lock(ctx, from.DatabaseID); err != nil && !errors.Is(err, ports.ErrNoRow) {
				return err
			}
		}
		if next, err = l.last(ctx, tx, from); err != nil {
			return err
		}
		if change != nil {
			change(&next)
		}
		if err = tx.Operations().SaveLeased(ctx, next); err == nil && also != nil {
			err = also(ctx, tx)
		}
		written = err == nil
		return err
	})
	if err == nil {
		l.op, l.saved, l.unsure = next, next, false
	} else if written {
		l.unsure = true
	}
	return err
}

// last is from or, where the reply of a commit was lost, what is stored: to write what this process knows would take a stage
// back, while what was committed with it stays.
func (l *Lease) last(ctx context.Context, tx ports.Tx, from operation.Operation) (operation.Operation, error) {
	if !l.unsure {
		return from, nil
	}
	stored, err := tx.Operations().Lock(ctx, from.ID)
	if errors.Is(err, ports.ErrNoRow) || err == nil && stored.Epoch != from.Epoch {
		return stored, ports.ErrLeaseLost
	}
	return stored, err
}

// Progress is what the operation shows until the next step. It is stored with what is saved next, or where the step asks for
// another one: a step that fails has shown nothing.
func (l *Lease) Progress(stage string, percent int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.op.Stage, l.op.Progress, l.op.BytesDone, l.op.BytesTotal = stage, max(l.op.Progress, percent), 0, 0
}

// Moved adds to what Progress has said how many bytes are done of the part that is under way.
func (l *Lease) Moved(b command.Bytes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.op.BytesDone, l.op.BytesTotal = b.Done, b.Total
}

// The pauses between two questions about a running job.
const (
	pollLeast  = 50 * time.Millisecond
	PollMost   = 2 * time.Second  // where nothing speaks for another
	pollQueued = 10 * time.Second // of one that waits for its turn at the agent, as very many may
)

// PollAfter is the pause before the agent is asked about a job again: a sixteenth of the time that the operation has taken so
// far, and not above PollMost or, where the job waits for its turn, pollQueued.
func (l *Lease) PollAfter(waits bool) time.Duration {
	most := PollMost
	if waits {
		most = pollQueued
	}
	return min(max(l.engine.Clock.Now().Sub(*l.Operation().StartedAt)/16, pollLeast), most)
}

// putDown returns the lease, so that the operation is claimed again after a pause. It works even after the step's context has
// ended.
func (l *Lease) putDown(pause time.Duration, attempts int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), 5*time.Second)
	defer cancel()
	err := l.save(ctx, func(o *operation.Operation) {
		o.Until, o.NotBefore, o.Attempts = nil, l.engine.Clock.Now().Add(pause), attempts
	}, nil)
	if err == nil && pause < idlePoll { // no worker would look in time by itself
		time.AfterFunc(pause, l.engine.idle.WakeAll)
	}
	return err
}

// Log tells the journal what happened to the operation.
func (l *Lease) Log(what string, err error) { l.engine.log(l.ctx, what, l.Operation(), err) }
