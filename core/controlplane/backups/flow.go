package backups

import (
	"cmp"
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Kind is the kind of the operations that make backups.
const Kind operation.Kind = "backup"

func (b *Backups) register() {
	work.Register(b.base.Work, work.Kind[operation.BackupInput]{
		Spec: operation.Spec{
			Kind: Kind, Public: true, Right: account.ManageBackups, Cancelable: operation.Always, BesideLogins: true,
		},
		Step: b.step, GiveUp: b.giveUp,
		Calls: []string{"backup", "close"}, Commits: []string{"succeeded", "failed", "canceled"},
	})
}

// backupJob is one step of a backup, with what it is about.
type backupJob struct {
	*work.Job[operation.BackupInput]
	b      *Backups
	agent  ports.Agent
	record database.Record
	of     operation.Operation
}

// step asks the agent for the backup. It keeps sending the same command, which starts the work, resumes it after a crash of the
// agent, and returns its progress.
func (b *Backups) step(ctx context.Context, job *work.Job[operation.BackupInput]) (work.Next, error) {
	j := backupJob{Job: job, b: b, of: job.Operation()}
	var err error
	if j.record, j.agent, err = b.base.DatabaseAndAgent(ctx, j.of); err != nil {
		return work.Next{}, err
	}
	if j.of.CancelRequested {
		if next, err := j.cancel(ctx); !command.RefusedFor(err, command.ReasonCompleted) {
			return next, err
		}
	}
	if j.Input.NoRoom {
		return j.finishUnasked(ctx)
	}
	if j.of.Stage == operation.StageQueued {
		if err := base.TellAccount(ctx, j.agent, j.record); err != nil {
			return work.Next{}, err
		}
	}
	report, err := j.ask(ctx)
	if err != nil {
		return work.Next{}, err
	}
	if report.State == command.BackupRunning {
		j.Progress(report.Stage, report.Progress)
		j.Moved(report.Bytes)
		return work.Again(j.PollAfter(report.Stage == operation.StageQueued)), nil
	}
	return j.conclude(ctx, report)
}

// ask sends the command. A permanent refusal is returned as a report of failure.
func (j backupJob) ask(ctx context.Context) (report command.BackupReport, err error) {
	c := command.Backup{
		DatabaseID: j.record.ID, Filename: backup.Filename(j.Input.Filename), Verify: j.Input.Verify, MaxBytes: j.Input.MaxBytes,
	}
	err = j.Call(ctx, "backup", func(ctx context.Context, f ports.Fence) (err error) {
		report, err = ports.Do(ctx, j.agent, f, c)
		return err
	})
	if base.RefusedForGood(err) {
		return command.BackupReport{State: command.BackupFailed, Reason: base.ReasonShown(err)}, nil
	}
	return report, err
}

// cancel carries out a user's request to cancel. ReasonCompleted: the backup is complete, and is concluded instead.
func (j backupJob) cancel(ctx context.Context) (work.Next, error) {
	if err := j.Close(ctx, j.agent); err != nil {
		return work.Next{}, err
	}
	return j.Finish(ctx, work.Ending{
		On: operation.ConfirmCancel, DatabaseName: j.record.Name, Also: func(ctx context.Context, tx ports.Tx) error {
			return j.audit(ctx, tx, audit.OperationCanceled, nil)
		},
	})
}

// giveUp has the agent end the work, and remove what there is of the file. A backup that is whole has to be taken as that: the
// operation goes on.
func (b *Backups) giveUp(ctx context.Context, job *work.Job[operation.BackupInput], by operation.Order) (work.Next, error) {
	j := backupJob{Job: job, b: b, of: job.Operation()}
	var err error
	j.record, j.agent, err = b.base.DatabaseAndAgent(ctx, j.of)
	if !by.ServerGone || j.record.ID == "" {
		if err == nil {
			err = j.Close(ctx, j.agent)
		}
		if command.RefusedFor(err, command.ReasonCompleted) {
			return work.Again(0), nil
		}
		if err != nil {
			return work.Next{}, err
		}
	}
	e := j.failed(command.BackupReport{})
	e.Cause, e.DatabaseName = by.Cause(), j.record.Name
	return j.Finish(ctx, e)
}

// finishUnasked ends a scheduled backup for which the quota had nothing left. The agent has not heard of it.
func (j backupJob) finishUnasked(ctx context.Context) (work.Next, error) {
	e := j.failed(command.BackupReport{
		Reason:  command.ReasonStorageFull,
		Message: "the account's quota for the backups of this database is used up: delete some of them",
	})
	e.DatabaseName = j.record.Name
	return j.Finish(ctx, e)
}

func (j backupJob) conclude(ctx context.Context, r command.BackupReport) (work.Next, error) {
	e := j.failed(r)
	switch r.State {
	case command.BackupDone:
		e = j.succeeded(r)
	case command.BackupNotVerified:
		e = j.unverified(r)
	case command.BackupFailed, command.BackupRunning:
		if err := j.Close(ctx, j.agent); err != nil {
			return work.Next{}, err
		}
	}
	e.DatabaseName = j.record.Name
	return j.Finish(ctx, e)
}

func (j backupJob) succeeded(r command.BackupReport) work.Ending {
	result := operation.BackupResult{
		Filename: j.Input.Filename, SizeBytes: r.SizeBytes, ChecksumSHA256: r.ChecksumSHA256, VerifiedAt: r.VerifiedAt,
	}
	return work.Ending{On: operation.Succeed, Result: operation.Encode(result), Also: j.keep(r)}
}

// unverified keeps the file for inspection; nothing is ever restored from it.
func (j backupJob) unverified(r command.BackupReport) work.Ending {
	r.VerifiedAt = nil
	return work.Ending{On: operation.Fail, Cause: fault.New(fault.BackupNotVerified, "%s", r.Message), Also: j.keep(r)}
}

func (j backupJob) failed(r command.BackupReport) work.Ending {
	code, message := fault.AgentError, "the database server could not make the backup"
	if r.Reason == command.ReasonStorageFull {
		code, message = fault.BackupStorageFull, "the database server has no room for another backup"
	}
	cause := fault.New(code, "%s", cmp.Or(r.Message, message))
	return work.Ending{On: operation.Fail, Cause: cause, Also: func(ctx context.Context, tx ports.Tx) error {
		return j.audit(ctx, tx, audit.BackupFinished, audit.Details{"status": "failed", "code": string(cause.Code)})
	}}
}

// keep stores the record of the file.
func (j backupJob) keep(r command.BackupReport) func(context.Context, ports.Tx) error {
	return func(ctx context.Context, tx ports.Tx) error {
		owner, err := tx.Accounts().Get(ctx, j.record.AccountID)
		if err != nil {
			return err
		}
		name, err := backup.ParseFilename(j.Input.Filename)
		if err != nil {
			return err
		}
		trigger, createdAt := backup.Trigger(j.Input.Trigger), j.of.CreatedAt
		err = tx.Backups().Add(ctx, backup.Backup{
			DatabaseID: j.record.ID, Filename: name, OperationID: j.of.ID, Trigger: trigger,
			Format: backup.FormatSQLGzip, SizeBytes: r.SizeBytes, ChecksumSHA256: r.ChecksumSHA256, ManifestSHA256: r.ManifestSHA256,
			CreatedAt: createdAt, VerifiedAt: r.VerifiedAt, ExpiresAt: backup.Expiry(trigger, createdAt, owner.Quotas().BackupDays),
			RoleManifest: r.RoleManifest,
		})
		if err != nil {
			return err
		}
		status := "succeeded"
		if r.State == command.BackupNotVerified {
			status = "not verified"
		}
		return j.audit(ctx, tx, audit.BackupFinished, audit.Details{"filename": j.Input.Filename, "status": status})
	}
}

func (j backupJob) audit(ctx context.Context, tx ports.Tx, what audit.Action, details audit.Details) error {
	if details == nil {
		details = audit.Details{}
	}
	details["operationId"] = string(j.of.ID)
	return j.b.base.Audit(ctx, tx, j.record, j.of.Actor, what, details)
}
