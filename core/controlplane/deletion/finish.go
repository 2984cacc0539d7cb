package deletion

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// FinishDeletion queues what is left to do of a deletion of which the metadata and the server tell different things, as after one
// of them went back in time. Undelete, or the doctor, brings such a database back instead. It asks for no gate.
//
//   - Its server has it out of service, or has lost it, and the record says that it serves: the record becomes that of a deleted
//     one, without a backup.
//   - Its server has it in service, and the record says that it is deleted: it is deleted anew, with a backup of what it holds.
//   - Its server has nothing of it any more, and the record says that it is deleted: the record is purged at once.
//
// VALIDATION_ERROR on "reason". DATABASE_NOT_FOUND. DATABASE_STATE_CONFLICT: both tell the same, or an operation is open.
// AGENT_ERROR: the agent does not answer.
func (u *Unverified) FinishDeletion(
	ctx context.Context, db id.DatabaseID, by operation.Order,
) (o operation.Operation, err error) {
	if err := by.Check(); err != nil {
		return o, err
	}
	d := u.deletion
	record, err := d.base.Record(ctx, db)
	if err != nil {
		return o, base.NotFound(err, base.ErrDatabaseNotFound())
	}
	agent, err := d.base.AgentOf(ctx, record.ServerID)
	if err != nil {
		return o, err
	}
	has, err := base.InventoryOf(ctx, agent, db)
	if err != nil {
		return o, fault.Wrap(err, fault.AgentError, "the server does not say what it has: %s", err)
	}
	err = d.base.UpdateStored(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if err := base.Idle(ctx, tx, locked.ID); err != nil {
			return err
		}
		o, err = d.finish(ctx, tx, locked, has, by)
		return err
	})
	if err == nil {
		d.base.Work.Reserved(o.Kind)
	}
	return o, err
}

// finish queues the operation that makes both sides tell the same; has is nil where the server has nothing.
func (d *Deletion) finish(
	ctx context.Context, tx ports.Tx, locked database.Record, has *command.InventoryDatabase, by operation.Order,
) (o operation.Operation, err error) {
	how := deletion.Ordered{By: by.By, Reason: by.Reason}
	stands := has != nil && has.Made && has.Actual != nil
	switch out := stands && has.Isolated != ""; {
	case locked.Status == database.Deleted && stands && !out:
		if locked, err = d.revived(ctx, tx, locked); err != nil {
			return o, err
		}
		return d.BeginOrdered(ctx, tx, locked, how)
	case locked.Status == database.Deleted && !stands:
		return d.queuePurge(ctx, tx, locked, audit.Operator, audit.Details{"operator": by.By, "reason": by.Reason})
	case locked.Status.Gone():
		return o, fault.New(fault.DatabaseStateConflict, "it is %s, and its server has it out of service, as it should", locked.Status)
	case out:
		how.Isolated = true
		return d.BeginOrdered(ctx, tx, locked, how)
	case stands:
		return o, fault.New(fault.DatabaseStateConflict, "it is %s, and its server has it in service: nobody has begun to delete it",
			locked.Status)
	}
	if locked.Status != database.Error { // so that its deletion passes over that nothing is there
		cell, err := locked.Status.Decide(database.AccessLost)
		if err != nil {
			return o, err
		}
		locked.Status = cell.Next
	}
	how.Bare = true
	return d.BeginOrdered(ctx, tx, locked, how)
}

// revived makes a deleted database what it was, in a record that is locked.
func (d *Deletion) revived(ctx context.Context, tx ports.Tx, locked database.Record) (database.Record, error) {
	s, err := tx.Deletions().Get(ctx, locked.ID)
	if err == nil {
		err = d.followed(ctx, tx, locked, Recovering)
	}
	if err == nil {
		err = d.revive(ctx, tx, locked, s.Tombstone.StatusBefore)
	}
	if err != nil {
		return locked, err
	}
	return tx.Databases().Lock(ctx, locked.ID)
}

// queuePurge queues the purge of a database whose record is locked.
func (d *Deletion) queuePurge(
	ctx context.Context, tx ports.Tx, locked database.Record, by audit.Actor, details audit.Details,
) (o operation.Operation, err error) {
	cell, err := locked.Status.Decide(database.Purge)
	if err != nil {
		return o, err
	}
	locked.Status = cell.Next
	if err := tx.Databases().Save(ctx, locked); err != nil {
		return o, err
	}
	o = d.base.Work.Queued(locked, deletion.KindPurge, nil, work.Origin{Actor: by})
	if err := tx.Operations().Add(ctx, o); err != nil {
		return o, err
	}
	details["operationId"] = string(o.ID)
	return o, d.base.Audit(ctx, tx, locked, by, audit.PurgeBegun, details)
}
