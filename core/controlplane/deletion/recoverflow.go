package deletion

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/ports"
)

func (d *Deletion) registerRecover() {
	work.Register(d.base.Work, work.Kind[deletion.RecoveryInput]{
		Spec: operation.Spec{Kind: deletion.KindRecover, Public: true, Right: account.Own},
		Step: d.stepRecover, GiveUp: d.giveUpRecovery, Withdraw: d.notRecovered,
		Calls:   []string{"rejoin", "close"},
		Commits: []string{string(deletion.RecoveryFailing), "succeeded", "failed"},
	})
}

// recovering is one step of a recovery.
type recovering struct {
	*work.Job[deletion.RecoveryInput]
	d      *Deletion
	agent  ports.Agent
	record database.Record
	of     operation.Operation
	stage  deletion.RecoveryStage
}

func (d *Deletion) stepRecover(ctx context.Context, job *work.Job[deletion.RecoveryInput]) (next work.Next, err error) {
	t := recovering{Job: job, d: d, of: job.Operation()}
	t.stage = deletion.RecoveryOf(t.of)
	if t.record, t.agent, err = d.base.DatabaseAndAgent(ctx, t.of); err != nil {
		return next, err
	}
	cell, err := deletion.Recovery.Decide(t.stage, deletion.RecoveryAdvance)
	if err != nil {
		return next, err
	}
	if t.stage = cell.Next; t.stage == deletion.RecoveryFailing {
		return t.end(ctx, t.Failure())
	}
	return t.rejoin(ctx)
}

// enter commits the stage to which an event leads.
func (t *recovering) enter(ctx context.Context, on deletion.RecoveryEvent, cause *fault.Error) error {
	cell, err := deletion.Recovery.Decide(t.stage, on)
	if err != nil {
		return err
	}
	err = t.Save(ctx, string(cell.Next), func(o *operation.Operation) { o.Enter(string(cell.Next), cause) }, nil)
	if err == nil {
		t.stage = cell.Next
	}
	return err
}

// rejoin has the agent put the database back into service.
func (t recovering) rejoin(ctx context.Context) (work.Next, error) {
	t.Progress(string(deletion.Rejoining), 0)
	err := t.Call(ctx, "rejoin", func(ctx context.Context, f ports.Fence) error {
		_, err := ports.Do(ctx, t.agent, f, command.Rejoin{DatabaseID: t.record.ID, Open: t.Input.Status == database.Active})
		return err
	})
	switch {
	case err == nil:
		return t.conclude(ctx)
	case base.RefusedForGood(err),
		command.RefusedFor(err, command.ReasonBusy) && t.of.Attempts >= restore.MostSwitches:
		cause := errNotRecovered(err)
		if err := t.enter(ctx, deletion.RecoveryRefused, cause); err != nil {
			return work.Next{}, err
		}
		return t.end(ctx, cause)
	}
	return work.Next{}, err
}

// end has the agent take back what it has begun, and makes the operation failed. ReasonCompleted: the database is in service
// after all, and that is concluded instead.
func (t recovering) end(ctx context.Context, cause *fault.Error) (work.Next, error) {
	err := t.Close(ctx, t.agent)
	switch {
	case command.RefusedFor(err, command.ReasonCompleted):
		cell, err := deletion.Recovery.Decide(t.stage, deletion.RecoveryCompleted)
		if err != nil {
			return work.Next{}, err
		}
		t.stage = cell.Next
		return t.rejoin(ctx)
	case err != nil:
		return work.Next{}, err
	}
	return t.Finish(ctx, t.failed(cause))
}

func (t recovering) failed(cause *fault.Error) work.Ending {
	return work.Ending{
		On: operation.Fail, Cause: cause, DatabaseName: t.record.Name,
		Also: func(ctx context.Context, tx ports.Tx) error {
			if err := t.d.notRecovered(ctx, tx, t.of); err != nil {
				return err
			}
			return t.d.base.Audit(ctx, tx, t.record, t.of.Actor, audit.RecoverFailed, audit.Details{
				"operationId": string(t.of.ID), "code": string(cause.Code),
			})
		},
	}
}

// notRecovered tells the others of a recovery that has failed, or that was canceled before it began.
func (d *Deletion) notRecovered(ctx context.Context, tx ports.Tx, o operation.Operation) error {
	locked, err := tx.Databases().Lock(ctx, o.DatabaseID)
	if err != nil {
		return err
	}
	return d.followed(ctx, tx, locked, NotRecovered)
}

// conclude makes the operation final, and the database what it was before its deletion. What of its access snapshot is gone by
// then is reported; what goes at the same moment has gone afterwards.
func (t recovering) conclude(ctx context.Context) (work.Next, error) {
	var result deletion.RecoveryResult
	var file backup.Filename
	err := t.d.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		s, err := tx.Deletions().Get(ctx, t.record.ID)
		if err != nil {
			return err
		}
		skipped, err := tx.Deletions().Skipped(ctx, t.record.ID)
		result = deletion.Recovered(s.Tombstone, skipped)
		if s.Backup != nil {
			file = s.Backup.Filename
		}
		return err
	})
	if err != nil {
		return work.Next{}, err
	}
	return t.Finish(ctx, work.Ending{
		On: operation.Succeed, DatabaseName: t.record.Name, Result: operation.Encode(result),
		Also: func(ctx context.Context, tx ports.Tx) error {
			locked, err := tx.Databases().Lock(ctx, t.record.ID)
			if err != nil {
				return err
			}
			if err := t.release(ctx, tx, locked, file); err != nil {
				return err
			}
			if err := tx.Deletions().Recovered(ctx, locked.ID); err != nil {
				return err
			}
			if err := t.d.save(ctx, tx, locked, Recovered, t.revive); err != nil {
				return err
			}
			return t.d.base.Audit(ctx, tx, locked, t.of.Actor, audit.DatabaseRecovered, audit.Details{
				"operationId": string(t.of.ID), "status": string(t.Input.Status),
			})
		},
	})
}

// revive gives the record its status, and a daily backup its next time: it missed none while it was deleted.
func (t recovering) revive(r *database.Record) (err error) {
	now := t.d.base.Clock.Now()
	r.NextBackupAt, r.ScheduleSince = backup.Next(r.ID, r.Schedule, now), &now
	r.Status, err = deletion.Reopen(r.Status, t.Input.Status)
	return err
}

// release makes the deletion backup, where there is one, a backup like any other, with a retention from now on.
func (t recovering) release(ctx context.Context, tx ports.Tx, locked database.Record, file backup.Filename) error {
	if file == "" {
		return nil
	}
	owner, err := tx.Accounts().Get(ctx, locked.AccountID)
	if err != nil {
		return err
	}
	until := t.d.base.Clock.Now().AddDate(0, 0, owner.Quotas().BackupDays)
	return tx.Backups().SetExpiry(ctx, locked.ID, file, until)
}
