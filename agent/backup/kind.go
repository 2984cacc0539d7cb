package backup

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// kind makes a backup.
func (x *Backups) kind() jobs.Kind[command.Backup, command.BackupReport] {
	request := func(j jobs.Job, c command.Backup) Request {
		return Request{
			OperationID: j.OperationID, DatabaseID: c.DatabaseID, Database: j.Database, Filename: c.Filename, Passing: c.Passing,
			Verify: c.Verify, Owner: j.Database, Logins: j.Roles, MaxBytes: c.MaxBytes, Account: j.Account, At: c.At, Lost: c.Lost,
			Size: c.SizeBytes, Followed: c.Followed, Aside: j.Aside,
		}
	}
	return jobs.Kind[command.Backup, command.BackupReport]{
		Run: func(ctx context.Context, j jobs.Job, c command.Backup, tell jobs.Tell) (command.BackupReport, error) {
			return reported(x.Run(ctx, request(j, c), tell))
		},
		Abandon: func(ctx context.Context, j jobs.Job, c command.Backup, attempts int, last error) (command.BackupReport, error) {
			return reported(x.Abandon(ctx, request(j, c), attempts, last))
		},
		Discard: func(ctx context.Context, j jobs.Job, c command.Backup) error {
			if err := x.unkeep(ctx, request(j, c)); err != nil {
				return err
			}
			return x.Discard(ctx, request(j, c))
		},
		Complete: func(ctx context.Context, j jobs.Job, c command.Backup) (bool, error) {
			return x.Complete(ctx, request(j, c))
		},
		Apart:  command.Backup.Apart,
		Serves: func(c command.Backup) bool { return c.Passing || c.ForDeletion },
		Running: func(stage string, progress int, bytes command.Bytes) command.BackupReport {
			return command.BackupReport{State: command.BackupRunning, Stage: stage, Progress: progress, Bytes: bytes}
		},
		Failed: func(cause error) command.BackupReport {
			if jobs.IsAway(cause) {
				report, _ := reported(Result{}, fault.New(fault.BackupStorageUnavailable, "where backups are kept does not answer"))
				return report
			}
			const otherwise = "the database could not be dumped, or the file not be checked; " + jobs.OperatorsKnow
			return command.BackupReport{
				State: command.BackupFailed, Reason: command.ReasonFailed, Message: jobs.ForCustomer(cause, otherwise),
			}
		},
		Made: func(r command.BackupReport) bool {
			return r.State == command.BackupDone || r.State == command.BackupNotVerified
		},
	}
}

// reported is what became of a backup. An error means that this is open.
func reported(result Result, err error) (command.BackupReport, error) {
	report := command.BackupReport{
		State: command.BackupDone, Progress: 100, SizeBytes: result.Manifest.File.SizeBytes,
		ChecksumSHA256: result.Manifest.File.SHA256, ManifestSHA256: result.Manifest.SHA256,
		VerifiedAt: result.VerifiedAt, RoleManifest: result.Manifest.HasRoles(),
		AsOf: result.AsOf,
	}
	if err == nil {
		return report, nil
	}
	failed := func(reason command.Reason, message string) (command.BackupReport, error) {
		return command.BackupReport{State: command.BackupFailed, Reason: reason, Message: message}, nil
	}
	var late *jobs.TooLongError
	var cut *jobs.CutShortError
	var over *overBoundError
	var known *fault.Error
	switch {
	case errors.As(err, &late) && !fault.Has(err, fault.BackupNotVerified): // a second attempt would take as long
		return failed(command.ReasonFailed, late.Error())
	case errors.As(err, &cut):
		return failed(command.ReasonFailed, cut.Error())
	case errors.As(err, &over): // and find the same again
		return failed(command.ReasonFailed, over.Error())
	case jobs.IsAway(err): // it may be back
	case errors.As(err, &known):
		switch known.Code {
		case fault.BackupNotVerified:
			report.State, report.Message = command.BackupNotVerified, known.Message
			return report, nil
		case fault.BackupStorageFull, fault.BackupStorageUnavailable, fault.BackupConflict, fault.DatabaseNotFound,
			fault.PointNotRecoverable:
			return failed(ledger.ReasonOf(known.Code), known.Message)
		}
	}
	return command.BackupReport{}, err
}
