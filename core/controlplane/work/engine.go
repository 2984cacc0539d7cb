package work

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/ports"
)

// Config is what an engine needs. All ports are required; the zero value of a choice means its default.
type Config struct {
	Store   ports.Store
	Clock   ports.Clock
	Entropy ports.Entropy
	Journal ports.Journal
	// Tracer shows each turn of a worker in the trace of the request that asked for the operation; by default there are no traces.
	Tracer trace.Tracer
	// Site is where the work of an operation is: its database, also where the agent of its server is not known. Only kinds with
	// stages need it, and Audit, which adds a line to the activity log.
	Site  func(context.Context, operation.Operation) (database.Record, ports.Agent, error)
	Audit func(context.Context, ports.Tx, database.Record, audit.Actor, audit.Action, audit.Details) error
	// May is asked before a worker claims something; it returns ErrNoRow where that has to be left to other processes. By default
	// nothing has.
	May func(context.Context) error
	// Held is asked before each step of what the service has begun by itself because a time is over (operation.Spec.Ends), with its
	// server; brake.Held where it has to wait. By default nothing has to.
	Held func(context.Context, brake.Work, id.ServerID) (time.Time, error)
	// Instance names this process in leases; it must differ from every other process's.
	Instance string
	// LeaseHold is how long a worker may be silent before another takes over its work; by default DefaultLeaseHold.
	LeaseHold time.Duration
	// StepTime bounds one step of a worker; by default DefaultStepTime. A server that does not answer keeps a worker busy so long.
	StepTime time.Duration
	// Crash is called at each of Engine.Points.
	Crash func(point string)
}

// DefaultLeaseHold is long enough to survive a pause of a busy process, and short enough to wait for after a crash.
const DefaultLeaseHold = 30 * time.Second

// DefaultStepTime is longer than any step takes on a server that works.
const DefaultStepTime = time.Minute

// Engine claims operations and runs their steps. Any number of engines, in any number of processes, share the queue: leases and
// their epochs ensure that no operation is worked on twice at a time, and that a worker that was suspended beyond the end of its
// lease neither writes nor reaches an agent.
type Engine struct {
	Config
	kinds map[operation.Kind]kind
	names []operation.Kind // in the order of registration

	load load
	idle ports.Sleepers // workers of this process
}

// New makes an engine without kinds. It starts nothing: see Register and Run.
func New(c Config) *Engine {
	c.LeaseHold, c.StepTime = cmp.Or(c.LeaseHold, DefaultLeaseHold), cmp.Or(c.StepTime, DefaultStepTime)
	if c.May == nil {
		c.May = func(context.Context) error { return nil }
	}
	if c.Held == nil {
		c.Held = func(context.Context, brake.Work, id.ServerID) (time.Time, error) { return time.Time{}, nil }
	}
	if c.Tracer == nil {
		c.Tracer = trace.Off{}
	}
	if c.Crash == nil {
		c.Crash = func(string) {}
	}
	return &Engine{Config: c, kinds: map[operation.Kind]kind{}}
}

// Origin is who asked for an operation, and with which request.
type Origin struct {
	Actor     audit.Actor
	RequestID string
}

// Queued is a new operation on a database, for whichever worker claims it.
func (e *Engine) Queued(r database.Record, k operation.Kind, input json.RawMessage, by Origin) operation.Operation {
	now := e.Clock.Now()
	return operation.Operation{
		ID: id.FromBytes[id.OperationID](e.Entropy.UUID()), AccountID: r.AccountID, DatabaseID: r.ID, ServerID: r.ServerID, Kind: k,
		Logins: e.Spec(k).Logins, Status: operation.Queued, Stage: operation.StageQueued, Input: input,
		Actor: by.Actor, RequestID: by.RequestID,
		CreatedAt: now, Lease: operation.Lease{NotBefore: now},
	}
}

// Own is a new operation for which a caller of this process waits: it is created as claimed, for RunNow.
func (e *Engine) Own(r database.Record, k operation.Kind, input json.RawMessage, by Origin) operation.Operation {
	o := e.Queued(r, k, input, by)
	return o.Claimed(e.Instance, o.CreatedAt, e.holdOf(k))
}

// Reserved is called when the intent of an operation was committed.
func (e *Engine) Reserved(k operation.Kind) { e.Crash(Reserved(k)) }

// log tells the journal what happened to an operation.
func (e *Engine) log(ctx context.Context, what string, o operation.Operation, err error) {
	e.Journal.Log(context.WithoutCancel(ctx), ports.JournalEvent{
		What: what, DatabaseID: o.DatabaseID, ServerID: o.ServerID, OperationID: o.ID, Kind: string(o.Kind), RequestID: o.RequestID,
		Epoch: o.Epoch, Err: err,
	})
}
