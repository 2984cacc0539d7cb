package controlplane

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// An agent that has been told a higher generation than the stored one refuses a command as stale, or as another one of the same
// generation. Either another process has stored something newer meanwhile, which is then sent; or the metadata were restored
// from a backup, and the agent knows changes of which there is no record any more. The record is what counts: it moves past the
// agent's generations, and is sent again. Each attempt moves once, so that a pause lies between two moves in vain.

// leap is how far a generation moves where the agent, which is of an earlier version, does not name its own. It is more than the
// changes between two backups; where it is not enough, the next attempt moves again.
const leap = 1000

// overtaken reports whether an agent refused a command for its generation.
func overtaken(err error) bool {
	return command.RefusedFor(err, command.ReasonStale) || command.RefusedFor(err, command.ReasonConflict)
}

// generationsOf are those that a refusal names; nil where it names none.
func generationsOf(err error) *command.Generations {
	var no *command.Refusal
	if errors.As(err, &no) {
		return no.Generations
	}
	return nil
}

// surpassing is a generation above the stored one and above all that the agent has been told.
func surpassing(stored int64, refusal error) int64 {
	g := generationsOf(refusal)
	if g == nil {
		return stored + leap
	}
	return max(stored, g.Applied, g.Admitted) + 1
}

// surpassAllowlist moves the stored list past the agent's generations, unless another process has stored a newer one since it
// was sent.
func (b *base) surpassAllowlist(ctx context.Context, sent command.SetAllowlist, refusal error) error {
	b.journal(ctx, "allowlist.overtaken", sent.DatabaseID, refusal)
	return b.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		stored, err := tx.Databases().Lock(ctx, sent.DatabaseID)
		if err != nil || stored.AllowlistGeneration != sent.Generation {
			return err
		}
		stored.AllowlistGeneration = surpassing(stored.AllowlistGeneration, refusal)
		return tx.Databases().Save(ctx, stored)
	})
}

// setAccess sends an operation's access, once more where it has to move past the agent's generations.
func (d *Databases) setAccess(ctx context.Context, j *lifecycle, agent ports.Agent, db id.DatabaseID) error {
	action := database.Event(j.Input.Action)
	send := func(ctx context.Context, f ports.Fence) error {
		return ports.Tell(ctx, agent, f, command.SetAccess{
			DatabaseID: db, Generation: j.Input.Generation, Open: action != database.Stop, Disconnect: action != database.Start,
		})
	}
	refusal := j.Call(ctx, "access", send)
	if !overtaken(refusal) {
		return refusal
	}
	j.Record("operation.overtaken", refusal)
	j.Input.Generation = surpassing(j.Input.Generation, refusal)
	_, err := d.moveAccess(ctx, j,
		func(o *operation.Operation) { o.Input = operation.Encode(j.Input) },
		func(stored int64) int64 { return max(stored, j.Input.Generation) })
	if err != nil {
		return err
	}
	return j.Call(ctx, "access", send)
}

// surpassAccess moves the stored access past the agent's generations, for the next attempt of an operation.
func (d *Databases) surpassAccess(ctx context.Context, j *lifecycle, refusal error) error {
	j.Record("operation.overtaken", refusal)
	_, err := d.moveAccess(ctx, j, nil, func(stored int64) int64 { return surpassing(stored, refusal) })
	return err
}

// moveAccess saves the operation's database with the generation of access that next makes of the stored one, and in the same
// transaction what changes of the operation itself.
func (d *Databases) moveAccess(
	ctx context.Context, j *lifecycle, change func(*operation.Operation), next func(stored int64) int64,
) (record database.Record, err error) {
	db := j.Operation().DatabaseID
	err = j.Save(ctx, "generation", change, func(ctx context.Context, tx ports.Tx) (err error) {
		if record, err = tx.Databases().Lock(ctx, db); err != nil {
			return err
		}
		record.AccessGeneration = next(record.AccessGeneration)
		return tx.Databases().Save(ctx, record)
	})
	return record, err
}
