package moves

import (
	"context"
	"slices"
	"strconv"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Between the pivot and the moment at which the other server lets customers in, both servers have all of the database, and nobody
// gets in. By itself a move only goes forward from there; an order takes it back where the other server does not come to that.

// Return implements work.Returning: the other server has not let customers in, and will not. Once it has, the move has succeeded,
// and what has not come along stays where it is.
func (t *turn) Return(ctx context.Context, cause *fault.Error) (next work.Next, is bool, err error) {
	switch t.Stage {
	case move.Serving:
	case move.Departing, move.Settling:
		next, err = t.leaveRest(ctx)
		return next, true, err
	default:
		return next, false, nil
	}
	if err := t.reachesSource(ctx); err != nil {
		return next, true, err
	}
	switch err := t.close(ctx, "close_target", t.to.agent); {
	case command.RefusedFor(err, command.ReasonCompleted): // it has
		next, err = t.serve(ctx)
		return next, true, err
	case err != nil:
		return next, true, err
	}
	next, err = t.goBack(ctx, cause)
	return next, true, err
}

// Lost implements work.Steps. Before the pivot it is the database's server that is gone, and what the other one has of it is
// taken back as far as it answers; where that has completed the move, as metadata that went back do not know, it is concluded.
// Afterwards it is the other one. Until that is known to have served, the database goes back; then it is had back from what the
// one that is gone has left, and so it is where the server that was left is gone, too.
func (t *turn) Lost(ctx context.Context, cause *fault.Error) (work.Next, error) {
	switch {
	case t.Stage == move.Serving:
		err := t.reachesSource(ctx)
		if err == nil {
			return t.goBack(ctx, cause)
		}
		if !base.RefusedForGood(err) && t.m.base.CheckGone(ctx, t.from.ID) != nil {
			return work.Next{}, err
		}
		return t.Finish(ctx, t.Ending(operation.Fail, cause))
	case move.Pivotal(t.Stage):
		return t.Finish(ctx, t.Ending(operation.Fail, cause))
	}
	if err := t.close(ctx, "close_target", t.to.agent); command.RefusedFor(err, command.ReasonCompleted) {
		if move.Machine.Admits(t.Stage, stage.Refused) {
			return t.Fail(ctx, cause) // from where it is concluded
		}
		return t.Concluded(ctx)
	}
	return t.Finish(ctx, t.Ending(operation.Fail, cause))
}

// leaveRest ends a move although the server that is left may still have the database, closed, and backups that the other one has
// not.
func (t *turn) leaveRest(ctx context.Context) (work.Next, error) {
	list, err := provision.Backups(ctx, t.m.base, t.Record.ID)
	if err != nil {
		return work.Next{}, err
	}
	has, err := base.BackupsAt(ctx, t.to.agent, t.Record.ID)
	if err != nil {
		return work.Next{}, fault.Wrap(err, fault.AgentError, "the server %s does not say which backups it has: %s", t.to.Name,
			base.WhyRefused(err))
	}
	if t.Stage == move.Departing {
		t.note("the server %s may still have the database, closed", t.from.Name)
	}
	t.Input.Kept = nil
	for _, b := range list {
		if !slices.Contains(has, b.Filename) {
			t.keep(b.Filename, "the move was ended")
		}
	}
	return t.Finish(ctx, t.Ending(operation.Succeed, nil))
}

// reachesSource demands that the server that is left answers, and sends it what was decided meanwhile, such as a suspension,
// before it lets anybody in.
func (t *turn) reachesSource(ctx context.Context) error {
	if _, err := t.m.base.PushTo(ctx, t.from.agent, t.Record.ID); err != nil {
		return fault.Wrap(err, fault.AgentError, "the database cannot go back to the server %s: %s", t.from.Name, base.WhyRefused(err))
	}
	return nil
}

// goBack has the server that is left let customers in again as before the move, and makes the database its own.
func (t *turn) goBack(ctx context.Context, cause *fault.Error) (work.Next, error) {
	if err := t.close(ctx, "close", t.from.agent); err != nil {
		return work.Next{}, err
	}
	return t.Finish(ctx, t.Ending(operation.Fail, cause).After(func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Servers().Move(ctx, t.Record.ID, t.from.ID); err != nil {
			return err
		}
		if err := forget(ctx, tx, t.Record.ID, t.from.ID); err != nil {
			return err
		}
		err := base.Change(ctx, tx, t.Record.ID, func(r *database.Record) error {
			r.AccessGeneration++
			move.Become(r, t.from.PostgresVersion)
			t.m.base.Arrived(r, nil)
			return nil
		})
		if err != nil {
			return err
		}
		return t.moved(ctx, tx, t.to.Server, t.from.Server)
	}))
}

// Ending implements work.Steps.
func (t *turn) Ending(on operation.Event, cause *fault.Error) work.Ending {
	details := audit.Details{"from": t.from.Name, "to": t.to.Name}
	if on == operation.Succeed && t.Input.ClosedMs > 0 {
		details["closedMilliseconds"] = strconv.FormatInt(t.Input.ClosedMs, 10)
	}
	e := t.Logged(on, cause, audit.MoveFinished, details)
	if on != operation.Succeed {
		return e
	}
	e.Result = operation.Encode(move.Result{
		Host: t.to.PublicHost, Port: t.to.PublicPort, PostgresVersion: t.to.PostgresVersion, ClosedMilliseconds: t.Input.ClosedMs,
		Notes: append([]string{}, t.Input.Notes...),
	})
	return e.After(t.kept)
}

var (
	_ work.Steps     = (*turn)(nil)
	_ work.Returning = (*turn)(nil)
)
