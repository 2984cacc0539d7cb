package moves

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// ready demands that both agents answer now, and that the other server has what is stored beside the data: from here on it goes
// fast, or it is undone.
func (t *turn) ready(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, move.PartTime)
	defer cancel()
	if _, err := ports.Ask(ctx, t.from.agent, command.AskCapabilities{}); err != nil {
		return err
	}
	t.Input.Sent, err = t.m.base.PushTo(ctx, t.to.agent, t.Record.ID)
	return err
}

// part has customers kept out where the database is, and the other server take the rest. Then the record names the other server,
// which lets them in. All that is one turn of one worker: whatever takes too long is undone.
func (t *turn) part(ctx context.Context) (work.Next, error) {
	t.Progress(string(move.Parting), almost)
	if !t.Input.Closed {
		parted, err := timed(ctx, t, "part", t.from.agent, command.Part{DatabaseID: t.Record.ID})
		switch {
		case t.lost(ctx, err):
			return work.Next{}, err
		case command.RefusedFor(err, command.ReasonBusy) && t.Input.Parts < move.MostParts:
			t.Input.Parts++
			t.Input.ShutAt = nil
			if err := t.Enter(ctx, stage.Busy, nil); err != nil {
				return work.Next{}, err
			}
			return t.Again(partAgain), nil
		case err != nil:
			return t.Fail(ctx, t.undone(err, "customers could not be kept out of the database"))
		}
		t.Input.ServedFor(parted.ServedMilliseconds, t.m.base.Clock.Now())
		if err := t.take(ctx, parted); err != nil {
			if t.lost(ctx, err) {
				return work.Next{}, err
			}
			return t.Fail(ctx, t.undone(err, "the other server did not get the last changes in time"))
		}
	}
	switch err := t.pivot(ctx, move.Pivoted); {
	case fault.Has(err, fault.ValidationError):
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError, "the other server has got a database of its name"))
	case err != nil:
		return work.Next{}, err
	}
	return t.serve(ctx)
}

// partAgain is the pause before customers are kept out again, who could not be.
const partAgain = 5 * time.Second

// timed is work.Send for a part of the time in which customers are kept out.
func timed[R any](ctx context.Context, t *turn, what string, a ports.Agent, c command.Returning[R]) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, move.PartTime)
	defer cancel()
	return work.Send(ctx, t.Lease, what, a, c)
}

// take has the other server take over the rest.
func (t *turn) take(ctx context.Context, parted command.Parted) error {
	ctx, cancel := context.WithTimeout(ctx, move.PartTime)
	defer cancel()
	for {
		_, err := work.Send(ctx, t.Lease, "take", t.to.agent, command.Take{DatabaseID: t.Record.ID, Parted: parted})
		if !command.RefusedFor(err, command.ReasonUnfinished) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(takeAgain):
		}
	}
}

// takeAgain is the pause before the other server is asked again whether it has all.
const takeAgain = 20 * time.Millisecond

// lost reports whether an error says that this worker is not the one any more that decides.
func (t *turn) lost(ctx context.Context, err error) bool {
	return errors.Is(err, ports.ErrLeaseLost) || command.RefusedFor(err, command.ReasonFenced) || err != nil && ctx.Err() != nil
}

// undone is what a move fails with in its parting: the agent's words, where they are for the customer.
func (t *turn) undone(err error, otherwise string) *fault.Error {
	var no *command.Refusal
	if errors.As(err, &no) && no.Reason == command.ReasonAltered {
		return fault.Wrap(err, fault.DatabaseStateConflict,
			"the database was changed in a way that cannot be followed: %s; move it again when that is over", no.Message)
	}
	return fault.Wrap(err, fault.AgentError, "%s; it is open where it was", otherwise)
}

// versions are the version of PostgreSQL that a database had before a move, where that changes it, and the one that it has then.
func versions(before, after int) string {
	if before == after {
		return strconv.Itoa(after)
	}
	return strconv.Itoa(before) + " -> " + strconv.Itoa(after)
}

// pivot makes the database the other server's, unless it is that already.
func (t *turn) pivot(ctx context.Context, on stage.Event) error {
	err := t.Enter(ctx, on, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Servers().Move(ctx, t.Record.ID, t.to.ID); err != nil {
			return err
		}
		err := base.Change(ctx, tx, t.Record.ID, func(r *database.Record) error {
			r.AccessGeneration++
			move.Become(r, t.to.PostgresVersion)
			t.m.base.Arrived(r, t.Input.Sent)
			return nil
		})
		if err != nil {
			return err
		}
		if err := t.sendOn(ctx, tx); err != nil {
			return err
		}
		return t.moved(ctx, tx, t.from.Server, t.to.Server)
	})
	if err != nil {
		return err
	}
	t.Record, err = t.m.base.Record(ctx, t.Record.ID)
	return err
}

// moved logs that the record names another server.
func (t *turn) moved(ctx context.Context, tx ports.Tx, from, to server.Server) error {
	return t.m.base.Audit(ctx, tx, t.Record, t.Of.Actor, audit.DatabaseMoved, audit.Details{
		"operationId": string(t.Of.ID), "from": from.Name, "to": to.Name, "host": to.PublicHost,
		"postgresVersion": versions(t.Record.PostgresVersion, to.PostgresVersion),
	})
}

// serve has the other server let customers in, again and again until it has, and then the one that is left send on. What a move
// was asked to undo that the other server has completed is the other server's, too.
func (t *turn) serve(ctx context.Context) (work.Next, error) {
	if t.Record.ServerID != t.to.ID {
		if err := t.pivot(ctx, stage.Completed); err != nil {
			return work.Next{}, err
		}
	}
	t.Progress(string(move.Serving), almost)
	if err := t.m.base.PushAll(ctx, t.Record.ID); err != nil {
		return work.Next{}, err
	}
	roles, err := t.m.roles(ctx, t.m.base, t.Record.ID)
	if err != nil {
		return work.Next{}, err
	}
	spec := command.Serve{
		DatabaseID: t.Record.ID, Open: t.Record.Status == database.Active, Generation: t.Record.AccessGeneration,
	}
	if spec.Passwords, err = provision.Passwords(ctx, t.m.base, t.Record.ID); err != nil {
		return work.Next{}, err
	}
	for _, one := range roles {
		if one.Admit != nil {
			spec.Roles = append(spec.Roles, *one.Admit)
		}
	}
	_, err = timed(ctx, t, "serve", t.to.agent, spec)
	switch {
	case base.Superseded(err):
		return t.surpass(ctx, err)
	case err != nil:
		return work.Next{}, err
	}
	if t.Input.ShutAt != nil {
		t.Input.ClosedMs = t.m.base.Clock.Now().Sub(*t.Input.ShutAt).Milliseconds()
	}
	t.sendsOn(ctx)
	return t.Next(ctx, move.Served)
}

// surpass moves the generation of access past those that the other server knows of an earlier stay.
func (t *turn) surpass(ctx context.Context, refusal error) (work.Next, error) {
	t.Log("operation.overtaken", refusal)
	err := t.Save(ctx, "generation", nil, func(ctx context.Context, tx ports.Tx) error {
		return base.Change(ctx, tx, t.Record.ID, func(r *database.Record) error {
			r.AccessGeneration = base.NextGeneration(r.AccessGeneration, refusal)
			return nil
		})
	})
	if err != nil {
		return work.Next{}, err
	}
	return t.Again(0), nil
}
