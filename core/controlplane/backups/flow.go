package backups

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// Kind is the kind of the operations that make backups.
const Kind operation.Kind = "backup"

func (b *Backups) register() {
	work.RegisterStaged(b.base.Work, work.Staged[operation.BackupInput]{
		Kind: work.Kind[operation.BackupInput]{
			Spec:  operation.Spec{Kind: Kind, Public: true, Right: account.ManageBackups, BesideLogins: true},
			Calls: []string{"backup", "close"}, Commits: []string{"succeeded", "failed", "canceled"},
		},
		Machine: backup.Machine, Begun: backup.Making,
		Begin: func(_ context.Context, t *work.Turn[operation.BackupInput]) (work.Steps, error) {
			return turn{t, b}, nil
		},
	})
}

// turn is one step of a backup.
type turn struct {
	*work.Turn[operation.BackupInput]
	b *Backups
}

// Do implements work.Steps: it asks the agent for the backup. It keeps sending the same command, which starts the work, resumes
// it after a crash of the agent, and returns its progress. A scheduled backup for which the quota had nothing left fails before
// the agent has heard of it.
func (t turn) Do(ctx context.Context, _ stage.Stage) (work.Next, error) {
	if t.Input.NoRoom {
		return t.Finish(ctx, t.Ending(operation.Fail, fault.New(fault.BackupStorageFull,
			"the account's quota for the backups of this database is used up: delete some of them")))
	}
	r, err := work.Send(ctx, t.Lease, "backup", t.Agent, command.Backup{
		DatabaseID: t.Record.ID, Filename: backup.Filename(t.Input.Filename), Verify: t.Input.Verify, MaxBytes: t.Input.MaxBytes,
	})
	switch {
	case base.RefusedForGood(err):
		return t.Fail(ctx, failed(command.BackupReport{Reason: base.ReasonShown(err)}))
	case err != nil:
		return work.Next{}, err
	}
	switch r.State {
	case command.BackupRunning:
		return t.Running(r.Stage, r.Progress, r.Bytes, r.Stage == operation.StageQueued)
	case command.BackupDone:
		e := t.stored(operation.Succeed, nil, "succeeded", r)
		e.Result = operation.Encode(operation.BackupResult{
			Filename: t.Input.Filename, SizeBytes: r.SizeBytes, ChecksumSHA256: r.ChecksumSHA256, VerifiedAt: r.VerifiedAt,
		})
		return t.Finish(ctx, e)
	case command.BackupNotVerified: // the file stays for inspection; nothing is ever restored from it
		r.VerifiedAt = nil
		return t.Finish(ctx, t.stored(operation.Fail, fault.New(fault.BackupNotVerified, "%s", r.Message), "not verified", r))
	case command.BackupFailed:
	}
	return t.Fail(ctx, failed(r))
}

func failed(r command.BackupReport) *fault.Error {
	return base.JobFailed(r.Reason, r.Message, "the database server could not make the backup",
		"the database server has no room for another backup")
}

// Ending implements work.Steps for a backup of which there is no file.
func (t turn) Ending(on operation.Event, cause *fault.Error) work.Ending {
	return t.Logged(on, cause, audit.BackupFinished, audit.Details{})
}

// stored is the ending of a backup of which there is a file, whose record it stores.
func (t turn) stored(on operation.Event, cause *fault.Error, status string, r command.BackupReport) work.Ending {
	return work.Ending{On: on, Cause: cause, DatabaseName: t.Record.Name, Also: func(ctx context.Context, tx ports.Tx) error {
		owner, err := tx.Accounts().Get(ctx, t.Record.AccountID)
		if err != nil {
			return err
		}
		name, err := backup.ParseFilename(t.Input.Filename)
		if err != nil {
			return err
		}
		trigger, createdAt := backup.Trigger(t.Input.Trigger), t.Of.CreatedAt
		err = tx.Backups().Add(ctx, backup.Backup{
			DatabaseID: t.Record.ID, Filename: name, OperationID: t.Of.ID, Trigger: trigger,
			Format: backup.FormatSQLGzip, SizeBytes: r.SizeBytes, ChecksumSHA256: r.ChecksumSHA256, ManifestSHA256: r.ManifestSHA256,
			CreatedAt: createdAt, VerifiedAt: r.VerifiedAt, ExpiresAt: backup.Expiry(trigger, createdAt, owner.Quotas().BackupDays),
			RoleManifest: r.RoleManifest,
		})
		if err != nil {
			return err
		}
		return t.b.base.Audit(ctx, tx, t.Record, t.Of.Actor, audit.BackupFinished, audit.Details{
			"operationId": string(t.Of.ID), "filename": t.Input.Filename, "status": status,
		})
	}}
}
