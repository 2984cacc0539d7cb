package deletion

import (
	"context"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// giveUp has the database opened as it was. Where the server refuses that for good, nobody knows who gets in, and the record says
// so: the owner can stop the database, or delete it again. A database that is isolated by then is deleted.
func (d *Deletion) giveUp(ctx context.Context, job *work.Job[deletion.Input], by operation.Order) (work.Next, error) {
	t := turn{Job: job, d: d, of: job.Operation()}
	if t.stage = deletion.Of(t.of); t.stage == deletion.Queued {
		t.stage = deletion.Closing
	}
	var err error
	t.record, t.agent, err = d.base.DatabaseAndAgent(ctx, t.of)
	switch {
	case by.ServerGone && t.record.ID != "":
		return t.lost(ctx)
	case err != nil:
		return work.Next{}, err
	}
	e := t.failed(by.Cause())
	switch t.stage {
	case deletion.Failing:
		e = t.failed(t.Failure())
	case deletion.Canceling:
		e = work.Ending{On: operation.ConfirmCancel}
	default:
		if err := t.enter(ctx, deletion.Refused, by.Cause()); err != nil {
			return work.Next{}, err
		}
	}
	next, err := t.reopen(ctx, e)
	if !base.RefusedForGood(err) || base.Superseded(err) {
		return next, err
	}
	if err := t.Close(ctx, t.agent); err != nil {
		return work.Next{}, err
	}
	return t.kept(ctx, e, database.Error)
}

// lost ends a deletion whose server is gone with all that it has. The database is deleted, without a backup to recover it from;
// one that was to stay stays, and nobody knows who gets in. Should the server come back, the purge still takes the database out
// of service first.
func (t turn) lost(ctx context.Context) (work.Next, error) {
	switch t.stage { //nolint:exhaustive // of the others the database is deleted
	case deletion.Failing:
		return t.kept(ctx, t.failed(t.Failure()), database.Error)
	case deletion.Canceling:
		return t.kept(ctx, work.Ending{On: operation.ConfirmCancel}, database.Error)
	}
	t.Input.Filename, t.Input.Made = "", nil
	return t.conclude(ctx)
}

// giveUpRecovery has the agent take back what it has begun: the database is deleted, as before. One that is in service by then is
// recovered.
func (d *Deletion) giveUpRecovery(
	ctx context.Context, job *work.Job[deletion.RecoveryInput], by operation.Order,
) (work.Next, error) {
	t := recovering{Job: job, d: d, of: job.Operation()}
	if t.stage = deletion.RecoveryOf(t.of); t.stage == deletion.RecoveryQueued {
		t.stage = deletion.Rejoining
	}
	var err error
	t.record, t.agent, err = d.base.DatabaseAndAgent(ctx, t.of)
	switch {
	case by.ServerGone && t.record.ID != "":
		return t.Finish(ctx, t.failed(by.Cause()))
	case err != nil:
		return work.Next{}, err
	case t.stage == deletion.RecoveryFailing:
		return t.end(ctx, t.Failure())
	}
	if err := t.enter(ctx, deletion.RecoveryRefused, by.Cause()); err != nil {
		return work.Next{}, err
	}
	return t.end(ctx, by.Cause())
}

// giveUpPurge forgets a database whose server is gone, with its backups and uploads. Should the server come back, the doctor
// finds what stands there.
func (d *Deletion) giveUpPurge(ctx context.Context, job *work.Job[work.None], _ operation.Order) (work.Next, error) {
	t := purging{Job: job, d: d, of: job.Operation()}
	var err error
	if t.record, _, err = d.base.DatabaseAndAgent(ctx, t.of); t.record.ID == "" {
		return work.Next{}, err
	}
	return t.Finish(ctx, t.purged(func(ctx context.Context, tx ports.Tx) error {
		names, err := tx.Backups().Names(ctx, t.record.ID)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := tx.Backups().Remove(ctx, t.record.ID, name); err != nil {
				return err
			}
		}
		files, err := tx.Uploads().OfAccount(ctx, t.record.AccountID)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.DatabaseID != t.record.ID {
				continue
			}
			if err := tx.Uploads().Remove(ctx, f.ID); err != nil {
				return err
			}
		}
		return nil
	}))
}
