package jobs

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Job is a piece of long work on a database. It is one step of an operation, which may have others.
type Job struct {
	OperationID id.OperationID
	Step        string
	Kind        command.Kind
	Payload     json.RawMessage // the command's
	// Secrets are what the command has beside its payload: of a job that is to be run, and never stored.
	Secrets    map[string]string
	DatabaseID id.DatabaseID
	Database   string       // its name in PostgreSQL
	Account    id.AccountID // empty until the control plane has said it
	Roles      []string     // those that the platform made for the database; only of a job that is to be run

	aside func(ctx context.Context, wait func(context.Context) error) error // of a job that runs
}

// Aside waits for something that needs none of the slots: the job gives its own up, and has one again when Aside returns without
// an error of ctx.
func (j Job) Aside(ctx context.Context, wait func(context.Context) error) error {
	return j.aside(ctx, wait)
}

// Tell is told how far a job is: its stage, the percentage of the whole, and the bytes of the part that is under way.
type Tell func(stage string, progress int, bytes command.Bytes)

// Kind says how the jobs of one kind of command are done, and what their results mean.
type Kind[C command.Returning[R], R any] struct {
	// Slots bound the jobs of this kind; nil means the runner's.
	Slots *Slots

	// Told hears every command until the job's result is stored, and Over the one by which that was; nil: none is of interest once
	// its job has begun.
	Told, Over func(operation id.OperationID, c C)
	// Check says what is wrong with a command whose job would begin; nil: nothing ever is. It refuses what cannot be done.
	Check func(ctx context.Context, operation id.OperationID, c C) error
	// Run does the job, or resumes it: what an earlier run left, killed at any moment, is continued or made again. An error means
	// that the outcome is open.
	Run func(ctx context.Context, j Job, c C, tell Tell) (R, error)
	// Abandon ends a job of which so many attempts were cut short. It runs nothing of the customer's any more, and keeps what was
	// made. last is what the last attempt ended with; nil where that is not known. The result and an error are as Run's.
	Abandon func(ctx context.Context, j Job, c C, attempts int, last error) (R, error)
	// Discard removes everything that the job has made, finished or not.
	Discard func(ctx context.Context, j Job, c C) error
	// Complete reports whether the job has made all that it was to make, although no result is stored; nil: it never has.
	Complete func(ctx context.Context, j Job, c C) (bool, error)

	// Running is the reply for a job that is not over.
	Running func(stage string, progress int, bytes command.Bytes) R
	// Failed is the result of a job that was given up.
	Failed func(cause error) R
	// Made reports whether a result leaves something that was made. What other results leave is discarded.
	Made func(result R) bool
	// Serves reports whether what a job makes serves only its operation; nil: none does.
	Serves func(c C) bool
	// Apart reports whether a job needs nothing of its database where that stands, which may be out of service; nil: each needs it.
	Apart func(c C) bool
	// Passing says that a result does not complete the operation: another of its commands does, or it is closed.
	Passing bool
}

// Result is what a job has come to.
type Result struct {
	Value any // of the kind's type
	Made  bool
}

// kind is a Kind without its types.
type kind struct {
	slots    *Slots // nil: the runner's
	run      func(ctx context.Context, j Job, tell Tell) (Result, error)
	abandon  func(ctx context.Context, j Job, attempts int, last error) (Result, error)
	discard  func(ctx context.Context, j Job) error
	complete func(ctx context.Context, j Job) (bool, error)
	serves   func(j Job) (bool, error)
	failed   func(cause error) Result
}

// Register adds a kind. It is called before the first job.
func Register[C command.Returning[R], R any](r *Runner, k Kind[C, R]) {
	result := func(v R, err error) (Result, error) { return Result{Value: v, Made: err == nil && k.Made(v)}, err }
	var zero C
	r.kinds[zero.About().Kind] = kind{
		slots: k.Slots,
		run: func(ctx context.Context, j Job, tell Tell) (Result, error) {
			return result(with(j, func(c C) (R, error) { return k.Run(ctx, j, c, tell) }))
		},
		abandon: func(ctx context.Context, j Job, attempts int, last error) (Result, error) {
			return result(with(j, func(c C) (R, error) { return k.Abandon(ctx, j, c, attempts, last) }))
		},
		discard: func(ctx context.Context, j Job) error {
			_, err := with(j, func(c C) (none struct{}, err error) { return none, k.Discard(ctx, j, c) })
			return err
		},
		complete: func(ctx context.Context, j Job) (bool, error) {
			if k.Complete == nil {
				return false, nil
			}
			return with(j, func(c C) (bool, error) { return k.Complete(ctx, j, c) })
		},
		serves: func(j Job) (bool, error) {
			return with(j, func(c C) (bool, error) { return k.Serves != nil && k.Serves(c), nil })
		},
		failed: func(cause error) Result { return Result{Value: k.Failed(cause)} },
	}
}

// with does something with the command of a job.
func with[C, T any](j Job, do func(c C) (T, error)) (zero T, err error) {
	var c C
	if err := json.Unmarshal(j.Payload, &c); err != nil {
		return zero, err
	}
	command.Receive(&c, command.Envelope{OperationID: j.OperationID, Secrets: j.Secrets})
	return do(c)
}

// Explained is an error of a job whose reason the customer may hear, and can do something about.
type Explained interface {
	error
	ForCustomer() string
}

// OperatorsKnow ends what a customer hears of an error that only the agent's log explains, which they cannot read.
const OperatorsKnow = "the operators of the service can find out why by the operation's ID"

// ForCustomer is what a customer hears of an error.
func ForCustomer(cause error, otherwise string) string {
	var told Explained
	if errors.As(cause, &told) {
		return told.ForCustomer()
	}
	return otherwise
}
