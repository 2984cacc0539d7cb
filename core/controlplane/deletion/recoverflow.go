package deletion

import (
	"context"
	"time"

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
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

func (d *Deletion) registerRecover() {
	work.RegisterStaged(d.base.Work, work.Staged[deletion.RecoveryInput]{
		Kind: work.Kind[deletion.RecoveryInput]{
			Spec:     operation.Spec{Kind: deletion.KindRecover, Public: true, Right: account.Own},
			Withdraw: d.notRecovered,
			Calls:    []string{"rejoin", "close"},
			Commits:  []string{string(stage.Failing), "succeeded", "failed"},
		},
		Machine: deletion.Recovery, Begun: deletion.Rejoining,
		Begin: func(_ context.Context, t *work.Turn[deletion.RecoveryInput]) (work.Steps, error) {
			return recovering{t, d}, nil
		},
	})
}

// recovering is one step of a recovery.
type recovering struct {
	*work.Turn[deletion.RecoveryInput]
	d *Deletion
}

// suspendedPause is how often a recovery looks whether its account is served again.
const suspendedPause = 10 * time.Second

// Do implements work.Steps: the agent puts the database back into service. It does not begin while the account is suspended: only
// a database that is in service can be told to be closed.
func (t recovering) Do(ctx context.Context, s stage.Stage) (work.Next, error) {
	if t.Of.Stage == operation.StageQueued && t.Record.Suspended() {
		return t.Again(suspendedPause), nil
	}
	t.Stage = s
	t.Progress(string(s), 0)
	_, err := work.Send(ctx, t.Lease, "rejoin", t.Agent, command.Rejoin{
		DatabaseID: t.Record.ID, Open: t.Input.Status == database.Active,
	})
	switch {
	case err == nil:
		return t.conclude(ctx)
	case base.RefusedForGood(err),
		command.RefusedFor(err, command.ReasonBusy) && t.Of.Attempts >= restore.MostSwitches:
		return t.Fail(ctx, fault.Wrap(err, fault.AgentError,
			"the database server could not put the database back into service; it is deleted as before"))
	}
	return work.Next{}, err
}

// Ending implements work.Steps for a recovery that fails: the database is deleted, as before.
func (t recovering) Ending(on operation.Event, cause *fault.Error) work.Ending {
	return work.Ending{
		On: on, Cause: cause, DatabaseName: t.Record.Name,
		Also: func(ctx context.Context, tx ports.Tx) error {
			if err := t.d.notRecovered(ctx, tx, t.Of); err != nil {
				return err
			}
			return t.d.base.Audit(ctx, tx, t.Record, t.Of.Actor, audit.RecoverFailed, audit.Details{
				"operationId": string(t.Of.ID), "code": string(cause.Code),
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
	err := t.d.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		s, err := tx.Deletions().Get(ctx, t.Record.ID)
		if err != nil {
			return err
		}
		skipped, err := tx.Deletions().Skipped(ctx, t.Record.ID)
		result = deletion.Recovered(s.Tombstone, skipped)
		return err
	})
	if err != nil {
		return work.Next{}, err
	}
	return t.Finish(ctx, work.Ending{
		On: operation.Succeed, DatabaseName: t.Record.Name, Result: operation.Encode(result),
		Also: func(ctx context.Context, tx ports.Tx) error {
			locked, err := tx.Databases().Lock(ctx, t.Record.ID)
			if err != nil {
				return err
			}
			if err := t.d.revive(ctx, tx, locked, t.Input.Status); err != nil {
				return err
			}
			return t.d.base.Audit(ctx, tx, locked, t.Of.Actor, audit.DatabaseRecovered, audit.Details{
				"operationId": string(t.Of.ID), "status": string(t.Input.Status),
			})
		},
	})
}

// revive makes a locked database what it was before its deletion. A daily backup gets its next time, since none was missed; the
// deletion backup becomes a backup like any other, with a retention from now on.
func (d *Deletion) revive(ctx context.Context, tx ports.Tx, locked database.Record, was database.Status) error {
	now := d.base.Clock.Now()
	if err := d.release(ctx, tx, locked, now); err != nil {
		return err
	}
	if err := tx.Deletions().Recovered(ctx, locked.ID); err != nil {
		return err
	}
	return d.save(ctx, tx, locked, Recovered, func(r *database.Record) (err error) {
		r.NextBackupAt, r.ScheduleSince = backup.Next(r.ID, r.Schedule, now), &now
		r.SettingsGeneration++ // the account may have been suspended or resumed meanwhile
		r.Status, err = deletion.Reopen(r.Status, was)
		return err
	})
}

func (d *Deletion) release(ctx context.Context, tx ports.Tx, locked database.Record, now time.Time) error {
	s, err := tx.Deletions().Get(ctx, locked.ID)
	if err != nil || s.Backup == nil {
		return err
	}
	owner, err := tx.Accounts().Get(ctx, locked.AccountID)
	if err != nil {
		return err
	}
	released := *s.Backup
	released.ExpiresAt = new(now.AddDate(0, 0, owner.Quotas().BackupDays))
	return tx.Backups().Save(ctx, released)
}
