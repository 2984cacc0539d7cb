package jobs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/core/trace"
)

// Runner runs jobs. After a restart it runs those that it is told to begin again.
type Runner struct {
	// Slots bound the jobs that run at a time, but for kinds that have their own. Set them before the first job.
	Slots *Slots
	// Pause is before the second attempt at a job whose first was cut short; it grows. 0 means 1 s. Set it before the first job.
	Pause time.Duration
	// Patience is how long a job waits for what is Away, in its attempts and between them, in all; 0 means 15 min. Set it before the
	// first job.
	Patience time.Duration
	// Tracer shows jobs in the traces of the commands that began them. Set it before the first job; by default there are none.
	Tracer trace.Tracer

	db    *sql.DB // the ledger's
	log   *zap.Logger
	kinds map[command.Kind]kind

	mu   sync.Mutex
	jobs map[key]*Running
}

// key is what a job is known by.
type key struct {
	operation id.OperationID
	step      string
}

func (j Job) key() key { return key{j.OperationID, j.Step} }

// New makes a runner without kinds.
func New(db *sql.DB, log *zap.Logger) *Runner {
	return &Runner{
		Slots: NewSlots(DefaultSlots), db: db, log: log, Tracer: trace.Off{}, kinds: map[command.Kind]kind{}, jobs: map[key]*Running{},
	}
}

// Running is a job that this process runs or that waits for a slot, or has run without having reported the result.
type Running struct {
	Job    Job
	begun  time.Time
	cancel context.CancelFunc
	done   chan struct{}

	// Written before done is closed, read after.
	result Result
	err    error

	slots *Slots
	slot  *slot.Request // only the job itself gives it up and asks again
	// isLast: it makes its last attempt, beside no other. The job alone looks.
	isLast bool

	mu       sync.Mutex
	stage    string
	progress int
	bytes    command.Bytes
}

// Begin returns a job that runs, and starts it if it does not. It goes on after the end of ctx, in whose trace it is seen.
func (r *Runner) Begin(ctx context.Context, j Job) (*Running, error) {
	k, known := r.kinds[j.Kind]
	if !known {
		return nil, fmt.Errorf("no jobs are of kind %s", j.Kind)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.jobs[j.key()]; w != nil {
		return w, nil
	}
	r.note("a job begins", j)
	w := r.start(context.WithoutCancel(ctx), j, r.slotsOf(k), func(ctx context.Context, w *Running) (Result, error) {
		return r.attempts(ctx, k, w)
	})
	r.jobs[j.key()] = w
	return w, nil
}

// Has reports whether a job runs or has a result that was not reported.
func (r *Runner) Has(operation id.OperationID, step string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.jobs[key{operation, step}] != nil
}

func (r *Runner) note(what string, j Job, fields ...zap.Field) {
	r.log.Info(what, append(append(fields, j.fields()...), zap.String("step", j.Step))...)
}

// fields name a job in the log, with the database that it is about.
func (j Job) fields() []zap.Field {
	of := []zap.Field{zap.String("operationId", string(j.OperationID))}
	if j.DatabaseID != "" {
		of = append(of, zap.String("databaseId", string(j.DatabaseID)), zap.String("database", j.Database))
	}
	return of
}

func (r *Runner) slotsOf(k kind) *Slots { return cmp.Or(k.slots, r.Slots) }

// start has the work done once the job has its slot.
func (r *Runner) start(
	ctx context.Context, j Job, slots *Slots, work func(context.Context, *Running) (Result, error),
) *Running {
	ctx, ended := r.Tracer.Begin(ctx, trace.Span{Name: "job " + string(j.Kind), Operation: j.OperationID, Database: j.DatabaseID})
	ctx, cancel := context.WithCancel(ctx)
	w := &Running{Job: j, begun: time.Now(), cancel: cancel, done: make(chan struct{}), slots: slots, stage: StageQueued}
	w.slot = slots.Ask(j.Account)
	go func() {
		defer close(w.done)
		defer cancel()
		defer func() {
			w.slot.Leave()
			ended("", w.err != nil)
		}()
		if w.err = w.slot.Wait(ctx); w.err == nil {
			w.result, w.err = work(ctx, w)
		}
	}()
	return w
}

// onJob is the job with what only one that runs can do.
func (w *Running) onJob() Job {
	j := w.Job
	j.aside = w.aside
	return j
}

// aside is Job.Aside.
func (w *Running) aside(ctx context.Context, wait func(context.Context) error) error {
	w.slot.Leave()
	if w.isLast {
		w.slots.leaveLast()
	}
	err := wait(ctx)
	w.slot = w.slots.Ask(w.Job.Account)
	err = errors.Join(err, w.slot.Wait(ctx))
	if w.isLast {
		again := w.slots.takeLast(ctx)
		w.isLast = again == nil
		err = errors.Join(err, again)
	}
	return err
}

const (
	// shortJob is how long IsOver waits: a small job is reported at once, without another question.
	shortJob = 200 * time.Millisecond
	// youngJob is how old a job may be that is waited for. Whoever asks about many that hang is kept waiting by none of them.
	youngJob = 2 * time.Second
)

// IsOver reports whether the job has ended, so that it has a Result. It waits a moment for one that has just begun.
func (w *Running) IsOver(ctx context.Context) bool {
	if time.Since(w.begun) < youngJob {
		select {
		case <-w.done:
		case <-time.After(shortJob):
		case <-ctx.Done():
		}
	}
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// Result is what the job has come to. An error means that its outcome is open.
func (w *Running) Result() (Result, error) { return w.result, w.err }

// Standing is how far the job is.
func (w *Running) Standing() (stage string, progress int, bytes command.Bytes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stage, w.progress, w.bytes
}

func (w *Running) tell(stage string, progress int, bytes command.Bytes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage, w.progress, w.bytes = stage, progress, bytes
}

// Forget forgets a job that has ended. If it is begun again, it runs again.
func (r *Runner) Forget(w *Running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, w.Job.key())
}

// Complete reports whether a job has made all that it was to make.
func (r *Runner) Complete(ctx context.Context, j Job) (bool, error) {
	k, known := r.kinds[j.Kind]
	if !known {
		return false, fmt.Errorf("no jobs are of kind %s", j.Kind)
	}
	return k.complete(ctx, j)
}

// Discard removes everything that a job has made. The job must not run.
func (r *Runner) Discard(ctx context.Context, j Job) error {
	k, known := r.kinds[j.Kind]
	if !known {
		return fmt.Errorf("no jobs are of kind %s", j.Kind)
	}
	return k.discard(ctx, j)
}

// Serves reports whether what a job makes serves only its operation.
func (r *Runner) Serves(j Job) (bool, error) {
	k, known := r.kinds[j.Kind]
	if !known {
		return false, nil
	}
	return k.serves(j)
}

// cancel cancels the jobs of an operation, or all where that is empty, and returns them.
func (r *Runner) cancel(of id.OperationID) (list []*Running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, w := range r.jobs {
		if of == "" || k.operation == of {
			w.cancel()
			list = append(list, w)
		}
	}
	return list
}

// End cancels the jobs of an operation, and waits for them.
func (r *Runner) End(ctx context.Context, of id.OperationID) error {
	for _, w := range r.cancel(of) {
		select {
		case <-w.done:
			r.Forget(w)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// stopTime bounds how long a stop waits for canceled jobs. The next start removes what is left of them.
const stopTime = 20 * time.Second

// Stop cancels all jobs and waits for them, but no longer than stopTime.
func (r *Runner) Stop() {
	late := time.After(stopTime)
	for _, w := range r.cancel("") {
		select {
		case <-w.done:
		case <-late:
			r.log.Warn("a canceled job does not end", w.Job.fields()...)
			return
		}
	}
}
