// Package drill proves that the archive of a server gives back what was: it has a database back as it was at a moment, beside the
// server, reads it whole, and compares it with what is known of that moment.
package drill

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/canary"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
)

// Deps are what drills need of an agent.
type Deps struct {
	Archive *archive.Archive // nil: the server keeps none, and there are no drills
	Marks   *canary.Marks
	Room    *diskroom.Room
	Files   *store.Store
	Jobs    *jobs.Slots
	Limits  backup.Limits
	Log     *zap.Logger
	// Crash is told of each point where a test kills the agent.
	Crash func(point string)
}

// CrashPoints are the moments at which tests kill an agent, in their order.
var CrashPoints = []string{"drill.begun", "drill.restored", "drill.compared"}

// Drills are those of a server, one at a time. Only this process knows of them.
type Drills struct {
	Deps
	// Wait is how long a question waits for the end of a drill, and Quiet how long a drill waits for jobs of customers.
	Wait, Quiet time.Duration

	asked chan *run

	mu   sync.Mutex
	last *run // the one that goes on, or has ended last
}

// run is a drill as it goes.
type run struct {
	of   command.Drill
	over chan struct{}

	mu    sync.Mutex
	stage drill.Stage
	found drill.Found // once it is over
}

const (
	askWait   = 5 * time.Second
	quietWait = time.Hour
	// quietPause is between two looks for jobs of customers, and roomWait is how long a drill waits for room that others have.
	quietPause = 5 * time.Second
	roomWait   = time.Minute
)

// New makes drills. They are done in Run.
func New(d Deps) *Drills {
	return &Drills{Deps: d, Wait: askWait, Quiet: quietWait, asked: make(chan *run, 1)}
}

// Run does what is asked for until ctx ends.
func (x *Drills) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-x.asked:
			found := x.do(ctx, r)
			if ctx.Err() != nil {
				return // who asks again has another agent begin anew
			}
			r.mu.Lock()
			r.found = found
			r.mu.Unlock()
			x.tell(r.of, found)
			close(r.over)
		}
	}
}

func (x *Drills) tell(of command.Drill, found drill.Found) {
	fields := []zap.Field{
		zap.String("drillId", string(of.ID)), zap.String("databaseId", string(of.DatabaseID)), zap.Time("at", of.At),
		zap.String("outcome", string(found.Outcome)), zap.Int64("ms", found.Facts.Took.Ms()),
	}
	if found.Outcome == drill.Proven {
		x.Log.Info("a moment was had back, and is what it was", fields...)
		return
	}
	x.Log.Warn("a moment was not proven", append(fields, zap.String("why", found.Why))...)
}

// Ask begins a drill, or tells of the one that goes on or has ended, if it is the same.
func (x *Drills) Ask(ctx context.Context, q command.Drill) (command.DrillReport, error) {
	r, err := x.begun(ctx, q)
	if err != nil {
		return command.DrillReport{}, err
	}
	select {
	case <-r.over:
		return command.DrillReport{Found: r.found}, nil
	case <-ctx.Done():
	case <-time.After(x.Wait):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return command.DrillReport{Stage: r.stage}, nil
}

func (x *Drills) begun(ctx context.Context, q command.Drill) (*run, error) {
	if x.Archive == nil {
		return nil, command.Refuse(command.ReasonInvalid, "this server keeps no archive")
	}
	if r, err := x.same(q.ID); r != nil || err != nil {
		return r, err
	}
	if _, err := x.Archive.Window(ctx, q.DatabaseID); err != nil { // there is no such database
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if r, err := x.sameLocked(q.ID); r != nil || err != nil {
		return r, err
	}
	x.last = &run{of: q, over: make(chan struct{}), stage: drill.Waiting}
	x.asked <- x.last // there is room: the one before is over
	return x.last, nil
}

func (x *Drills) same(of id.DrillID) (*run, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sameLocked(of)
}

// sameLocked is the drill of an ID; nil where it is to begin.
func (x *Drills) sameLocked(of id.DrillID) (*run, error) {
	r := x.last
	switch {
	case r == nil:
		return nil, nil
	case r.of.ID == of:
		return r, nil
	}
	select {
	case <-r.over:
		return nil, nil
	default:
		return nil, command.Refuse(command.ReasonCrowded, "the drill %s of %s goes on", r.of.ID, r.of.DatabaseID)
	}
}

func (r *run) at(stage drill.Stage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stage = stage
}

// quiet waits until the archive is ready, no job of a customer waits for its turn, and no other server runs beside this one: they
// go first.
func (x *Drills) quiet(ctx context.Context) error {
	for until := time.Now().Add(x.Quiet); ; {
		if _, waiting := x.Jobs.Count(); waiting == 0 && x.Archive.Idle() {
			return nil
		}
		if time.Now().After(until) {
			return notNow("for " + x.Quiet.String() + ", jobs of customers have gone first, or the archive was not ready")
		}
		if err := loop.Wait(ctx, min(quietPause, x.Quiet)); err != nil {
			return err
		}
	}
}
