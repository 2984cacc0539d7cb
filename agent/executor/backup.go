package executor

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Backup describes a backup to make.
type Backup struct {
	DatabaseID  id.DatabaseID
	OperationID id.OperationID
	Account     id.AccountID // empty until the control plane has said it
	Database    string       // its name in PostgreSQL
	Filename    backup.Filename
	Verify      bool
	Roles       []string // those that the platform made for the database
}

// Backups makes backup files.
type Backups interface {
	// Run makes the backup, or resumes it: what an earlier run left, killed at any moment, is continued or made again. It reports
	// progress to tell. The returned report's state is never "running"; an error means that the outcome is open.
	Run(ctx context.Context, b Backup, tell func(stage string, progress int)) (command.BackupReport, error)
	// Discard removes everything of this operation's backup: the file, verified or not, partial files, copies made for
	// verification.
	Discard(ctx context.Context, b Backup) error
	// Complete reports whether this operation's file exists and, where it is to be verified, is.
	Complete(ctx context.Context, b Backup) (bool, error)
	// Abandon ends a backup of which so many attempts were cut short. It runs nothing of the customer's any more, and keeps a file
	// that was made. last is what the last attempt ended with; nil where that is not known. A report and an error are as Run's.
	Abandon(ctx context.Context, b Backup, attempts int, last error) (command.BackupReport, error)
}

// Explained is an error of Backups.Run whose reason the customer may hear, and can do something about.
type Explained interface {
	error
	ForCustomer() string
}

// job is a backup that this process runs or that waits for a slot, or has run without having reported the result.
type job struct {
	backup Backup
	cancel context.CancelFunc
	done   chan struct{}

	// Written before done is closed, read after.
	report command.BackupReport
	err    error

	progress chan command.BackupReport // holds the latest
}

// backup starts a backup, or reports its progress. After a restart of the agent there is no job, and the ledger has no result:
// then it starts one, which takes up what its predecessor left.
func (x *Executor) backup(ctx context.Context, e protocol.Command, c command.Backup) (report command.BackupReport, err error) {
	b, err := x.planBackup(ctx, e, c)
	if err != nil {
		return report, err
	}
	crash.Point(crash.BackupAdmitted)
	j := x.jobFor(b)
	crash.Point(crash.BackupStarted)
	select {
	case <-j.done:
	case <-time.After(shortJob): // a small backup is reported at once, without another request
		return j.standing(), nil
	case <-ctx.Done():
		return j.standing(), nil
	}
	return x.report(ctx, e, j)
}

// shortJob is how long a command waits for its job to finish.
const shortJob = 200 * time.Millisecond

// report stores the result of a finished job. A job that may be retried starts again with the next command.
func (x *Executor) report(ctx context.Context, e protocol.Command, j *job) (command.BackupReport, error) {
	if j.err != nil {
		x.forget(j)
		return command.BackupReport{}, j.err
	}
	crash.Point(crash.BackupFinished)
	if err := atomically(ctx, x.db, outcome(e, j.report)); err != nil {
		return command.BackupReport{}, err
	}
	x.forget(j)
	if j.report.State == command.BackupFailed {
		crash.Point(crash.BackupFailed)
		x.discardFailed(ctx, j.backup)
	}
	crash.Point(crash.BackupReply)
	return j.report, nil
}

// discardFailed removes what a backup left whose failure is stored: even a good file, if its verification could not be carried
// out or recorded. What cannot be removed now is left to operation.close, which follows every failure.
func (x *Executor) discardFailed(ctx context.Context, b Backup) {
	if err := x.backups.Discard(ctx, b); err != nil {
		x.log.Warn("what a failed backup left is not removed yet", zap.String("operationId", string(b.OperationID)), zap.Error(err))
	}
}

func (x *Executor) planBackup(ctx context.Context, e protocol.Command, c command.Backup) (Backup, error) {
	d, err := x.madeDatabase(ctx, string(c.DatabaseID))
	if err != nil {
		return Backup{}, err
	}
	roles, err := pg.Column(ctx, x.db, "SELECT name FROM ledger.role WHERE database_id = $1 ORDER BY name", d.ID)
	if err != nil {
		return Backup{}, err
	}
	return Backup{
		DatabaseID: c.DatabaseID, OperationID: id.OperationID(e.OperationID), Database: d.Name,
		Account: id.AccountID(d.Account), Filename: c.Filename, Verify: c.Verify, Roles: roles,
	}, x.rememberBackup(ctx, e, c)
}

// rememberBackup stores what operation.close needs to know about the backup after a restart.
func (x *Executor) rememberBackup(ctx context.Context, e protocol.Command, c command.Backup) error {
	_, err := x.db.ExecContext(ctx, `INSERT INTO ledger.backup (operation_id, database_id, filename, verify) VALUES ($1, $2, $3, $4)
		ON CONFLICT (operation_id) DO UPDATE SET verify = excluded.verify`, e.OperationID, string(c.DatabaseID),
		string(c.Filename), c.Verify)
	return err
}

// jobFor returns the job of a backup, and starts one if there is none.
func (x *Executor) jobFor(b Backup) *job {
	x.jobsMu.Lock()
	defer x.jobsMu.Unlock()
	if j := x.jobs[string(b.OperationID)]; j != nil {
		return j
	}
	x.log.Info("a backup begins", zap.String("operationId", string(b.OperationID)), zap.String("databaseId", string(b.DatabaseID)))
	j := startJob(b, x.JobSlots.Ask(b.Account), x.attempts)
	x.jobs[string(b.OperationID)] = j
	return j
}

// startJob has the work done once the job has its slot.
func startJob(b Backup, slot *jobs.Slot, work func(context.Context, *job) (command.BackupReport, error)) *job {
	ctx, cancel := context.WithCancel(context.Background())
	j := &job{backup: b, cancel: cancel, done: make(chan struct{}), progress: make(chan command.BackupReport, 1)}
	j.tell("queued", 0)
	go func() {
		defer close(j.done)
		defer cancel()
		defer slot.Leave()
		if j.err = slot.Wait(ctx); j.err == nil {
			j.report, j.err = work(ctx, j)
		}
	}()
	return j
}

// tell keeps only the latest report.
func (j *job) tell(stage string, progress int) {
	select {
	case <-j.progress:
	default:
	}
	select {
	case j.progress <- command.BackupReport{State: command.BackupRunning, Stage: stage, Progress: progress}:
	default: // another goroutine of the job was faster
	}
}

func (j *job) standing() command.BackupReport {
	select {
	case r := <-j.progress:
		select {
		case j.progress <- r: // unless there is a newer report by now
		default:
		}
		return r
	default:
		return command.BackupReport{State: command.BackupRunning, Stage: "running"}
	}
}

func (x *Executor) forget(j *job) {
	x.jobsMu.Lock()
	defer x.jobsMu.Unlock()
	delete(x.jobs, string(j.backup.OperationID))
}

// endJob cancels the job of an operation, if there is one, and waits for it.
func (x *Executor) endJob(ctx context.Context, operation string) error {
	x.jobsMu.Lock()
	j := x.jobs[operation]
	x.jobsMu.Unlock()
	if j == nil {
		return nil
	}
	j.cancel()
	select {
	case <-j.done:
		x.forget(j)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stopTime bounds how long a stop waits for canceled backups. The next start removes what is left of them.
const stopTime = 20 * time.Second

func (x *Executor) stopJobs() {
	x.jobsMu.Lock()
	jobs := make([]*job, 0, len(x.jobs))
	for _, j := range x.jobs {
		j.cancel()
		jobs = append(jobs, j)
	}
	x.jobsMu.Unlock()
	late := time.After(stopTime)
	for _, j := range jobs {
		select {
		case <-j.done:
		case <-late:
			x.log.Warn("a canceled backup does not end", zap.String("operationId", string(j.backup.OperationID)))
			return
		}
	}
}
