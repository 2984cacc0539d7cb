package base

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// What opens or closes a database has the calls "access" and "undo", and the commit "generation".

// SendAccess has the agent open or close the database of an operation, once more where it has to move past the agent's
// generations: moved puts the new one into the operation's input, and encodes that.
func SendAccess(
	ctx context.Context, l *work.Lease, agent ports.Agent, c command.SetAccess, moved func(generation int64) json.RawMessage,
) error {
	send := func(ctx context.Context, f ports.Fence) error { return ports.Tell(ctx, agent, f, c) }
	refusal := l.Call(ctx, "access", send)
	if !Superseded(refusal) {
		return refusal
	}
	l.Log("operation.overtaken", refusal)
	c.Generation = NextGeneration(c.Generation, refusal)
	input := moved(c.Generation)
	_, err := moveAccess(ctx, l,
		func(o *operation.Operation) { o.Input = input },
		func(stored int64) int64 { return max(stored, c.Generation) })
	if err != nil {
		return err
	}
	return l.Call(ctx, "access", send)
}

// UndoAccess has the agent open or close the database of an operation as it was before. Each attempt has a generation of its
// own: the server takes it as newer than what the operation did, whatever it stored of that. An agent that has closed this
// operation has undone it before. Where it has to move past the agent's generations, the next attempt does it.
func UndoAccess(ctx context.Context, l *work.Lease, agent ports.Agent, open bool) (database.Record, error) {
	record, err := moveAccess(ctx, l, nil, func(stored int64) int64 { return stored + 1 })
	if err != nil {
		return record, err
	}
	err = l.Call(ctx, "undo", func(ctx context.Context, f ports.Fence) error {
		return ports.Tell(ctx, agent, f, command.SetAccess{
			DatabaseID: record.ID, Generation: record.AccessGeneration, Open: open,
		})
	})
	switch {
	case command.RefusedFor(err, command.ReasonClosed):
		return record, nil
	case Superseded(err):
		l.Log("operation.overtaken", err)
		_, moved := moveAccess(ctx, l, nil, func(stored int64) int64 { return NextGeneration(stored, err) })
		return record, errors.Join(err, moved)
	}
	return record, err
}

// moveAccess saves the database of a lease's operation with the generation of access that next makes of the stored one, and in
// the same transaction what changes of the operation itself.
func moveAccess(
	ctx context.Context, l *work.Lease, change func(*operation.Operation), next func(stored int64) int64,
) (record database.Record, err error) {
	db := l.Operation().DatabaseID
	err = l.Save(ctx, "generation", change, func(ctx context.Context, tx ports.Tx) (err error) {
		if record, err = tx.Databases().Lock(ctx, db); err != nil {
			return err
		}
		record.AccessGeneration = next(record.AccessGeneration)
		return tx.Databases().Save(ctx, record)
	})
	return record, err
}
