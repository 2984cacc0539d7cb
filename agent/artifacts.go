package agent

import (
	"context"
	"errors"
	"io"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/artifact/store"
	"github.com/pgherd/pgherd/agent/executor"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// backups connects the backuper and its folder with the executor and the listener. The folder is opened only when this agent is
// in charge, because opening removes what a predecessor left unfinished.
type backups struct {
	config   Config
	log      *zap.Logger
	backuper *artifact.Backuper
	store    *store.Store
	size     func(context.Context, command.DatabaseSize) (command.Size, error)
}

// open ends a predecessor's dumps and restores, then removes the files that they left unfinished.
func (b *backups) open(ctx context.Context, a artifact.Config) error {
	if b.backuper == nil {
		b.backuper = artifact.New(a, nil)
	}
	if err := b.backuper.EndPredecessor(ctx); err != nil {
		return err
	}
	files, err := store.Open(b.config.BackupDir, store.Options{Reserve: b.config.BackupReserve})
	if err != nil {
		return err
	}
	b.close()
	b.store, b.backuper = files, artifact.New(a, files)
	b.backuper.Crash = b.config.crash
	if err := b.backuper.ForgetReservations(ctx); err != nil {
		return err
	}
	exempt, err := b.backuper.CopiesAreExempt(ctx)
	if err == nil && !exempt {
		b.log.Warn("temp_file_limit holds for the copies that verify backups too; run pgherd agent init again to exempt them")
	}
	return err
}

func (b *backups) close() {
	if b.backuper != nil {
		_ = b.backuper.Close() // nothing is lost with a connection
	}
}

func request(b executor.Backup) artifact.Request {
	return artifact.Request{
		OperationID: b.OperationID, DatabaseID: b.DatabaseID, Database: b.Database, Filename: b.Filename, Verify: b.Verify,
		Logins: b.Roles,
	}
}

// Run implements executor.Backups.
func (b *backups) Run(
	ctx context.Context, x executor.Backup, tell func(stage string, progress int),
) (command.BackupReport, error) {
	return reported(b.backuper.Run(ctx, request(x), tell))
}

// Abandon implements executor.Backups.
func (b *backups) Abandon(ctx context.Context, x executor.Backup, attempts int, last error) (command.BackupReport, error) {
	return reported(b.backuper.Abandon(ctx, request(x), attempts, last))
}

// reported is what became of a backup. An error means that this is open.
func reported(result artifact.Result, err error) (command.BackupReport, error) {
	report := command.BackupReport{
		State: command.BackupDone, Progress: 100, SizeBytes: result.Manifest.File.SizeBytes,
		ChecksumSHA256: result.Manifest.File.SHA256, VerifiedAt: result.VerifiedAt, RoleManifest: result.Manifest.HasRoles(),
	}
	if err == nil {
		return report, nil
	}
	var late *artifact.TooLongError
	if errors.As(err, &late) { // a second attempt would take as long
		return command.BackupReport{State: command.BackupFailed, Reason: command.ReasonFailed, Message: late.Error()}, nil
	}
	var cut *artifact.CutShortError
	if errors.As(err, &cut) {
		return command.BackupReport{State: command.BackupFailed, Reason: command.ReasonFailed, Message: cut.Error()}, nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		switch known.Code {
		case fault.BackupNotVerified:
			report.State, report.Message = command.BackupNotVerified, known.Message
			return report, nil
		case fault.BackupStorageFull, fault.BackupConflict, fault.DatabaseNotFound:
			return command.BackupReport{
				State: command.BackupFailed, Reason: reasonOf(known.Code), Message: known.Message,
			}, nil
		}
	}
	return command.BackupReport{}, err
}

func reasonOf(code fault.Code) command.Reason {
	return map[fault.Code]command.Reason{
		fault.BackupStorageFull: command.ReasonStorageFull, fault.BackupConflict: command.ReasonConflict,
		fault.DatabaseNotFound: command.ReasonNotFound, fault.BackupNotFound: command.ReasonNotFound,
	}[code]
}

// Discard implements executor.Backups.
func (b *backups) Discard(ctx context.Context, x executor.Backup) error {
	return b.backuper.Discard(ctx, request(x))
}

// Complete implements executor.Backups.
func (b *backups) Complete(_ context.Context, x executor.Backup) (bool, error) {
	return b.backuper.Complete(request(x))
}

func (b *backups) room(ctx context.Context, q command.RoomForBackup) (none command.None, err error) {
	size, err := b.size(ctx, command.DatabaseSize{DatabaseID: q.DatabaseID})
	if err != nil {
		return none, err
	}
	return none, b.backuper.Room(ctx, size.Bytes)
}

func (b *backups) remove(_ context.Context, q command.DeleteBackup) (none command.None, err error) {
	return none, b.store.Delete(q.DatabaseID, q.Filename)
}

func (b *backups) serve(_ context.Context, q command.OpenBackup) (io.ReadCloser, int64, error) {
	return b.store.Open(q.DatabaseID, q.Filename)
}

// refusal turns every error of the agent into a refusal on the wire.
func refusal(err error) *command.Refusal {
	var known *fault.Error
	if errors.As(err, &known) {
		if reason := reasonOf(known.Code); reason != "" {
			return command.Refuse(reason, "%s", known.Message)
		}
	}
	return executor.AsRefusal(err)
}
