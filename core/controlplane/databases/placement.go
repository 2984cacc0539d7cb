package databases

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// createElsewhere continues a creation of which its server has certainly never heard on another server, with the same names,
// passwords and verifiers, unless an operator has named the server. Each server that fails is avoided from then on, so this
// ends. Where no other server has room, it waits for an agent of another protocol to be replaced; of a server that cannot be
// reached, the database is forgotten.
func (d *Databases) createElsewhere(
	ctx context.Context, j *creation, record database.Record, cause error,
) (work.Next, error) {
	moved, err := false, error(nil)
	if j.Input.On == "" {
		moved, err = d.moveElsewhere(ctx, j, record)
	}
	switch {
	case err != nil:
		return work.Next{}, err
	case !moved && command.RefusedFor(cause, command.ReasonOtherProtocol):
		return work.Next{}, cause
	case !moved:
		return d.forget(ctx, j, record,
			fault.Wrap(cause, fault.AgentError, "the database server cannot be reached; nothing was made"))
	}
	j.Log("operation.moved", cause)
	return work.Again(0), nil
}

// moveElsewhere commits that the server is avoided and, in the same transaction, which one is to have the database; false if
// there is none. After a crash the creation continues wherever that says.
func (d *Databases) moveElsewhere(ctx context.Context, j *creation, record database.Record) (moved bool, err error) {
	err = j.Save(ctx, "moved", nil, func(ctx context.Context, tx ports.Tx) error {
		now := d.base.Clock.Now()
		rooms, err := tx.Servers().Rooms(ctx, record.Name)
		if err != nil {
			return err
		}
		var other server.Server
		other, moved = server.Pick(rooms, server.Needs{
			Now: now, Connections: record.ReservedConnections(), Postgres: record.PostgresVersion, Leaving: record.ServerID,
		})
		// After Rooms, which takes the servers' locks in one order.
		if err := tx.Servers().Avoid(ctx, record.ServerID, avoidedFrom(now)); err != nil || !moved {
			return err
		}
		return tx.Servers().Move(ctx, record.ID, other.ID)
	})
	return moved, err
}

func avoidedFrom(now time.Time) *time.Time {
	until := now.Add(server.AvoidedFor)
	return &until
}

// noteAnswer remembers, for all hosts, that a server cannot make databases now, so that they go to others for a while, or that
// it answers again. A failure to remember fails no creation.
func (d *Databases) noteAnswer(ctx context.Context, s server.Server, answer error) {
	var refusal *command.Refusal
	var until *time.Time
	switch {
	case ctx.Err() != nil:
		return
	case ports.NeverHeard(answer), command.RefusedFor(answer, command.ReasonUnavailable):
		until = avoidedFrom(d.base.Clock.Now())
	case s.AvoidedUntil == nil, answer != nil && !errors.As(answer, &refusal):
		return
	}
	err := d.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Servers().Avoid(ctx, s.ID, until) })
	if err != nil {
		d.base.Journal.Log(ctx, ports.JournalEvent{What: "server.not_noted", Err: err})
	}
}
