package past

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/core/command"
)

// looking is a kind of jobs that only look, at one moment after another. Nothing is left of one that is interrupted: the next
// attempt begins anew.
func looking[C command.Returning[R], R any](
	slots *jobs.Slots, do func(context.Context, jobs.Job, C, jobs.Tell) (R, error), lookOf func(*R) *command.Look,
) jobs.Kind[C, R] {
	with := func(l command.Look) (r R) {
		*lookOf(&r) = l
		return r
	}
	reported := func(r R, err error) (R, error) {
		if err == nil {
			*lookOf(&r) = done()
			return r, nil
		}
		look, err := failed(err)
		return with(look), err
	}
	return jobs.Kind[C, R]{
		Slots: slots,
		Run: func(ctx context.Context, j jobs.Job, c C, tell jobs.Tell) (R, error) {
			return reported(do(ctx, j, c, jobs.Rising(tell)))
		},
		Abandon: func(_ context.Context, _ jobs.Job, _ C, attempts int, last error) (r R, _ error) {
			return reported(r, copies.CutShort("look", attempts, last))
		},
		Discard: func(context.Context, jobs.Job, C) error { return nil },
		Running: func(stage string, progress int, bytes command.Bytes) R { return with(running(stage, progress, bytes)) },
		Failed:  func(cause error) R { return with(givenUp(cause)) },
		Made:    func(r R) bool { return lookOf(&r).State == command.LookDone },
	}
}

// eye is where a job looks from: a server beside, which goes on from moment to moment as long as it can, and is made anew where
// it cannot.
type eye struct {
	*Past
	job  jobs.Job
	side *archive.Side
}

// at has the server be at a moment.
func (e *eye) at(ctx context.Context, at time.Time, tell jobs.Tell) (*archive.Side, error) {
	if e.side != nil {
		moved, err := e.side.Move(ctx, at, tell)
		if moved || err != nil {
			return e.side, err
		}
		if err := e.close(); err != nil {
			return nil, err
		}
	}
	side, err := e.archive.Look(ctx, momentOf(e.job, at), tell)
	if err == nil {
		e.side = side
	}
	return side, err
}

func (e *eye) close() error {
	if e.side == nil {
		return nil
	}
	err := e.side.Close()
	e.side = nil
	return err
}

// withEye does work that looks between two moments.
func (x *Past) withEye(
	ctx context.Context, j jobs.Job, from, to time.Time, tell jobs.Tell, do func(context.Context, *eye) error,
) error {
	return x.beside(ctx, j, []time.Time{from, to}, nil, tell, func(ctx context.Context) error {
		e := &eye{Past: x, job: j}
		err := do(ctx, e)
		return errors.Join(err, e.close())
	})
}
