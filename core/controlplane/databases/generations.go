package databases

import (
	"context"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// setAccess sends an operation's access, once more where it has to move past the agent's generations.
func (d *Databases) setAccess(ctx context.Context, j *lifecycle, agent ports.Agent, db id.DatabaseID) error {
	action := database.Event(j.Input.Action)
	send := func(ctx context.Context, f ports.Fence) error {
		return ports.Tell(ctx, agent, f, command.SetAccess{
			DatabaseID: db, Generation: j.Input.Generation, Open: action != database.Stop, Disconnect: action != database.Start,
		})
	}
	refusal := j.Call(ctx, "access", send)
	if !plane.Overtaken(refusal) {
		return refusal
	}
	j.Log("operation.overtaken", refusal)
	j.Input.Generation = plane.Surpassing(j.Input.Generation, refusal)
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
	j.Log("operation.overtaken", refusal)
	_, err := d.moveAccess(ctx, j, nil, func(stored int64) int64 { return plane.Surpassing(stored, refusal) })
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
