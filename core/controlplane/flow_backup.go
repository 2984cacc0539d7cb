package controlplane

import (
	"cmp"
	"context"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// backup follows a backup that the agent makes. It keeps sending the same command, which starts the work, resumes it after a
// crash of the agent, and returns its progress.
func (w *Worker) backup(ctx context.Context, h *held) error {
	input, err := operation.Decode[operation.BackupInput](h.operation().Input)
	if err != nil {
		return err
	}
	record, agent, err := w.site(ctx, h.operation())
	if err != nil {
		return err
	}
	w.Crash(CrashBackupClaimed)
	job := backupJob{w: w, h: h, agent: agent, record: record, input: input}
	return job.follow(ctx)
}

// backupJob is a worker's view of one backup.
type backupJob struct {
	w      *Worker
	h      *held
	agent  ports.Agent
	record database.Record
	input  operation.BackupInput
}

func (j backupJob) follow(ctx context.Context) error {
	tick := time.NewTicker(j.w.PollEvery)
	defer tick.Stop()
	for {
		if canceled, err := j.canceled(ctx); err != nil || canceled {
			return err
		}
		report, err := j.ask(ctx)
		if err != nil {
			return err
		}
		if report.State != ports.BackupRunning {
			return j.conclude(ctx, report)
		}
		if err := j.h.progress(ctx, report.Stage, report.Progress); err != nil {
			return err
		}
		j.w.Crash(CrashBackupStarted)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ask sends the command. A permanent refusal is returned as a report of failure.
func (j backupJob) ask(ctx context.Context) (ports.BackupReport, error) {
	fence, err := j.h.fence()
	if err != nil {
		return ports.BackupReport{}, err
	}
	report, err := j.agent.Backup(ctx, fence, ports.BackupSpec{
		DatabaseID: j.record.ID, Filename: j.input.Filename, Verify: j.input.Verify,
	})
	switch {
	case ports.RefusedFor(err, ports.ReasonStorageFull):
		return ports.BackupReport{State: ports.BackupFailed, Reason: ports.ReasonStorageFull}, nil
	case refusedForGood(err):
		return ports.BackupReport{State: ports.BackupFailed, Reason: ports.ReasonFailed}, nil
	}
	return report, err
}

// canceled carries out a user's request to cancel. A backup that is complete by then is concluded instead.
func (j backupJob) canceled(ctx context.Context) (bool, error) {
	var wish bool
	err := j.w.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		o, err := tx.Operations().Get(ctx, j.h.operation().ID)
		wish = o.CancelRequested
		return err
	})
	if err != nil || !wish {
		return false, err
	}
	switch err := j.close(ctx); {
	case ports.RefusedFor(err, ports.ReasonCompleted):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, j.h.finish(ctx, j.record.Name, ending{
		on: operation.ConfirmCancel, also: func(ctx context.Context, tx ports.Tx) error {
			return j.audit(ctx, tx, audit.OperationCanceled, nil)
		},
	})
}

func (j backupJob) close(ctx context.Context) error {
	fence, err := j.h.fence()
	if err != nil {
		return err
	}
	if err := j.agent.Close(ctx, fence); err != nil {
		return err
	}
	j.w.Crash(CrashBackupClosed)
	return nil
}

func (j backupJob) conclude(ctx context.Context, r ports.BackupReport) error {
	j.w.Crash(CrashBackupReported)
	var e ending
	switch r.State {
	case ports.BackupDone:
		e = j.succeeded(r)
	case ports.BackupNotVerified:
		e = j.unverified(r)
	case ports.BackupFailed, ports.BackupRunning:
		if err := j.close(ctx); err != nil {
			return err
		}
		e = j.failed(r)
	}
	err := j.h.finish(ctx, j.record.Name, e)
	if err == nil {
		j.w.Crash(CrashBackupCommitted)
	}
	return err
}

func (j backupJob) succeeded(r ports.BackupReport) ending {
	result := operation.BackupResult{
		Filename: j.input.Filename, SizeBytes: r.SizeBytes, ChecksumSHA256: r.ChecksumSHA256, VerifiedAt: r.VerifiedAt,
	}
	return ending{on: operation.Succeed, result: operation.Encode(result), also: j.keep(r)}
}

// unverified keeps the file for inspection; nothing is ever restored from it.
func (j backupJob) unverified(r ports.BackupReport) ending {
	r.VerifiedAt = nil
	return ending{on: operation.Fail, cause: fault.New(fault.BackupNotVerified, "%s", r.Message), also: j.keep(r)}
}

func (j backupJob) failed(r ports.BackupReport) ending {
	code, message := fault.AgentError, "the database server could not make the backup"
	if r.Reason == ports.ReasonStorageFull {
		code, message = fault.BackupStorageFull, "the database server has no room for another backup"
	}
	cause := fault.New(code, "%s", cmp.Or(r.Message, message))
	return ending{on: operation.Fail, cause: cause, also: func(ctx context.Context, tx ports.Tx) error {
		return j.audit(ctx, tx, audit.BackupFinished, audit.Details{"status": "failed", "code": string(cause.Code)})
	}}
}

// keep stores the record of the file.
func (j backupJob) keep(r ports.BackupReport) func(context.Context, ports.Tx) error {
	return func(ctx context.Context, tx ports.Tx) error {
		owner, err := tx.Accounts().Get(ctx, j.record.AccountID)
		if err != nil {
			return err
		}
		name, err := backup.ParseFilename(j.input.Filename)
		if err != nil {
			return err
		}
		trigger, createdAt := backup.Trigger(j.input.Trigger), j.h.op.CreatedAt
		err = tx.Backups().Add(ctx, backup.Backup{
			DatabaseID: j.record.ID, Filename: name, OperationID: j.h.op.ID, Trigger: trigger,
			Format: backup.FormatSQLGzip, SizeBytes: r.SizeBytes, ChecksumSHA256: r.ChecksumSHA256, CreatedAt: createdAt,
			VerifiedAt: r.VerifiedAt, ExpiresAt: backup.Expiry(trigger, createdAt, owner.Quotas().BackupDays),
			RoleManifest: r.RoleManifest,
		})
		if err != nil {
			return err
		}
		status := "succeeded"
		if r.State == ports.BackupNotVerified {
			status = "not verified"
		}
		return j.audit(ctx, tx, audit.BackupFinished, audit.Details{"filename": j.input.Filename, "status": status})
	}
}

func (j backupJob) audit(ctx context.Context, tx ports.Tx, what audit.Action, details audit.Details) error {
	if details == nil {
		details = audit.Details{}
	}
	details["operationId"] = string(j.h.op.ID)
	return j.w.audit(ctx, tx, j.record, j.h.op.Actor, what, details)
}
