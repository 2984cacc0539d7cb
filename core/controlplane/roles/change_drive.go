package roles

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// outcome is a change as it is after an attempt, with what was found.
type outcome struct {
	change role.Change
	findings
}

// findings are the result of the operation of a change that has ended.
type findings struct {
	Dependencies role.Dependencies `json:"dependencies"`
	Observed     role.Observation  `json:"observed"` // where the login was looked at to end the change
}

// Pauses before another look at a change on which somebody else works: each look writes to the metadata, and many requests may
// wait for one server that hangs.
const (
	firstPause = 25 * time.Millisecond
	mostPause  = 500 * time.Millisecond
)

// drive makes an attempt at a pending change. Where somebody else works on it, it waits for them. The context has a deadline.
func (d *driver) drive(ctx context.Context, j changeJob) (o outcome, err error) {
	deadline, _ := ctx.Deadline()
	left := func() time.Duration { return time.Until(deadline) } //nolint:forbidigo // a context has the machine's clock
	for first, pause := true, firstPause; ; first, pause = false, min(2*pause, mostPause) {
		if first && j.begun.ID != "" {
			err = d.base.Work.RunNow(ctx, j.begun, left())
		} else {
			_, err = d.base.Work.Advance(ctx, j.change.ID, left())
		}
		elsewhere := errors.Is(err, ports.ErrNoRow) || errors.Is(err, ports.ErrLeaseLost)
		if o, err = d.outcomeOf(ctx, j.change); err != nil || !o.change.Open() || !elsewhere { // the engine logs what went wrong
			return o, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return o, nil
		}
	}
}

func (d *driver) outcomeOf(ctx context.Context, c role.Change) (outcome, error) {
	ctx, cancel := d.base.Settling(ctx)
	defer cancel()
	return ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) (o outcome, err error) {
		if o.change, err = tx.RoleChanges().Get(ctx, c.DatabaseID, c.ID); err != nil || o.change.Open() {
			return o, err
		}
		done, err := tx.Operations().Get(ctx, c.ID)
		if err != nil || len(done.Result) == 0 {
			return o, err
		}
		o.findings, err = operation.Decode[findings](done.Result)
		return o, err
	})
}
