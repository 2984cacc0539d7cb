package agent

import (
	"context"
	"errors"
	"io"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// takeOver ends a predecessor's dumps and restores, then removes the files that they left unfinished.
func (a *Agent) takeOver(ctx context.Context) error {
	if err := a.backuper.EndPredecessor(ctx); err != nil {
		return err
	}
	if err := a.files.Sweep(); err != nil {
		return err
	}
	if err := a.backuper.ForgetReservations(ctx); err != nil {
		return err
	}
	return a.backuper.ForgetProofs(ctx)
}

// backups is the kind of job that makes a backup.
func backups(b *artifact.Backuper) jobs.Kind[command.Backup, command.BackupReport] {
	request := func(j jobs.Job, c command.Backup) artifact.Request {
		return artifact.Request{
			OperationID: j.OperationID, DatabaseID: c.DatabaseID, Database: j.Database, Filename: c.Filename, Verify: c.Verify,
			Owner: j.Database, Logins: j.Roles, MaxBytes: c.MaxBytes,
		}
	}
	return jobs.Kind[command.Backup, command.BackupReport]{
		Run: func(ctx context.Context, j jobs.Job, c command.Backup, tell jobs.Tell) (command.BackupReport, error) {
			return reported(b.Run(ctx, request(j, c), artifact.Progress(tell)))
		},
		Abandon: func(ctx context.Context, j jobs.Job, c command.Backup, attempts int, last error) (command.BackupReport, error) {
			return reported(b.Abandon(ctx, request(j, c), attempts, last))
		},
		Discard: func(ctx context.Context, j jobs.Job, c command.Backup) error { return b.Discard(ctx, request(j, c)) },
		Complete: func(_ context.Context, j jobs.Job, c command.Backup) (bool, error) {
			return b.Complete(request(j, c))
		},
		Running: func(stage string, progress int, bytes command.Bytes) command.BackupReport {
			return command.BackupReport{State: command.BackupRunning, Stage: stage, Progress: progress, Bytes: bytes}
		},
		Failed: func(cause error) command.BackupReport {
			const otherwise = "the database could not be dumped, or the file not be checked; the agent's log says why"
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
func reported(result artifact.Result, err error) (command.BackupReport, error) {
	report := command.BackupReport{
		State: command.BackupDone, Progress: 100, SizeBytes: result.Manifest.File.SizeBytes,
		ChecksumSHA256: result.Manifest.File.SHA256, ManifestSHA256: result.Manifest.SHA256,
		VerifiedAt: result.VerifiedAt, RoleManifest: result.Manifest.HasRoles(),
	}
	if err == nil {
		return report, nil
	}
	failed := func(reason command.Reason, message string) (command.BackupReport, error) {
		return command.BackupReport{State: command.BackupFailed, Reason: reason, Message: message}, nil
	}
	var late *artifact.TooLongError
	var cut *artifact.CutShortError
	var known *fault.Error
	switch {
	case errors.As(err, &late) && !fault.Has(err, fault.BackupNotVerified): // a second attempt would take as long
		return failed(command.ReasonFailed, late.Error())
	case errors.As(err, &cut):
		return failed(command.ReasonFailed, cut.Error())
	case errors.As(err, &known):
		switch known.Code {
		case fault.BackupNotVerified:
			report.State, report.Message = command.BackupNotVerified, known.Message
			return report, nil
		case fault.BackupStorageFull, fault.BackupConflict, fault.DatabaseNotFound:
			return failed(reasonOf(known.Code), known.Message)
		}
	}
	return command.BackupReport{}, err
}

func reasonOf(code fault.Code) command.Reason {
	return map[fault.Code]command.Reason{
		fault.BackupStorageFull: command.ReasonStorageFull, fault.BackupConflict: command.ReasonConflict,
		fault.DatabaseNotFound: command.ReasonNotFound, fault.BackupNotFound: command.ReasonNotFound,
		fault.UploadNotFound: command.ReasonNotFound,
	}[code]
}

func (a *Agent) room(ctx context.Context, q command.RoomForBackup) (none command.None, err error) {
	bytes, known := a.sizes.Size(q.DatabaseID)
	if !known {
		size, err := a.databases.Size(ctx, command.DatabaseSize{DatabaseID: q.DatabaseID})
		if err != nil {
			return none, err
		}
		bytes = size.Bytes
	}
	return none, a.backuper.Room(ctx, bytes)
}

func (a *Agent) openUpload(ctx context.Context, q command.OpenUpload) (command.Uploaded, error) {
	if err := a.ledger.HasDatabase(ctx, q.DatabaseID); err != nil {
		return command.Uploaded{}, err
	}
	return a.uploads.Open(ctx, q)
}

// removeFiles removes every file that there is of a database: its backups, with what was written and not committed, and uploads.
// Nobody must be making any of them.
func (a *Agent) removeFiles(ctx context.Context, db id.DatabaseID) error {
	return errors.Join(a.uploads.RemoveAll(ctx, db), a.files.DeleteAll(db))
}

func (a *Agent) deleteBackup(_ context.Context, q command.DeleteBackup) (none command.None, err error) {
	return none, a.files.Delete(q.DatabaseID, q.Filename)
}

func (a *Agent) openBackup(_ context.Context, q command.OpenBackup) (io.ReadCloser, int64, error) {
	return a.files.Open(q.DatabaseID, q.Filename)
}

func (a *Agent) openRest(_ context.Context, q command.OpenRest) (io.ReadCloser, int64, error) {
	file, size, err := a.files.Open(q.DatabaseID, q.Filename)
	if err != nil {
		return nil, 0, err
	}
	left := max(0, size-q.Offset)
	if _, err := file.Seek(-left, io.SeekEnd); err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, left, nil
}

func (a *Agent) openManifest(_ context.Context, q command.OpenManifest) (io.ReadCloser, int64, error) {
	return a.files.OpenManifest(q.DatabaseID, q.Filename)
}

// refusal turns every error of the agent into a refusal on the wire.
func refusal(err error) *command.Refusal {
	var known *fault.Error
	if errors.As(err, &known) {
		if reason := reasonOf(known.Code); reason != "" {
			return command.Refuse(reason, "%s", known.Message)
		}
	}
	return ledger.AsRefusal(err)
}
