package ledger

import (
	"context"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
)

// A database that moves here is made by an operation, filled by a switch of the same, and the operation's until it serves.

// Moves refuses a database that an operation has not moved here so far, or that serves already. ReasonNotFound.
func (l *Ledger) Moves(ctx context.Context, operation string, d Database) error {
	filled, err := l.did(ctx, operation, command.Step(command.Switch{Moving: true}))
	if err != nil {
		return err
	}
	served, err := l.HasServed(ctx, operation)
	if err == nil && (!filled || served || d.MadeBy != operation) {
		err = command.Refuse(command.ReasonNotFound, "the operation has put no copy in the database's place")
	}
	return err
}

// HasServed reports whether an operation has moved a database here for good.
func (l *Ledger) HasServed(ctx context.Context, operation string) (bool, error) {
	return l.did(ctx, operation, command.Step(command.Serve{}))
}

// HasDeparted reports whether an operation has given a database up.
func (l *Ledger) HasDeparted(ctx context.Context, operation string) (bool, error) {
	return l.did(ctx, operation, command.Step(command.Depart{}))
}

func (l *Ledger) did(ctx context.Context, operation, step string) (bool, error) {
	const query = "SELECT EXISTS (SELECT FROM ledger.command WHERE operation_id = $1 AND step = $2 AND result IS NOT NULL)"
	return pg.One[bool](ctx, l.db, query, operation, step)
}
