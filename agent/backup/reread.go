package backup

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/peer"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Readings read backups again, or take them over from servers that are gone, one at a time, beside all jobs. Only this process
// knows of them.
type Readings struct {
	// Wait is how long a question waits for the end of a reading, and Limit how long a reading of so many bytes may take.
	Wait  time.Duration
	Limit func(bytes int64) time.Duration

	files *store.Store
	adopt func(context.Context, command.AdoptBackup) error
	log   *zap.Logger
	asked chan *reading

	mu   sync.Mutex
	last *reading // the one that goes on, or has ended last
}

type reading struct {
	of    command.Question
	do    func(context.Context) (*time.Time, error)
	what  string // "reading the backup"
	db    id.DatabaseID
	name  backup.Filename
	bytes int64
	limit time.Time
	over  chan struct{}
	found command.BackupReading // once it is over
}

// rereadWait is Readings.Wait.
const rereadWait = 20 * time.Second

// NewReadings returns readings of what a store has; adopt takes a backup over. They are done in Run.
func NewReadings(
	files *store.Store, adopt func(context.Context, command.AdoptBackup) error, log *zap.Logger,
) *Readings {
	return &Readings{
		Wait: rereadWait, Limit: backup.ReadingTime, files: files, adopt: adopt, log: log, asked: make(chan *reading, 1),
	}
}

// Run reads what is asked for until ctx ends.
func (x *Readings) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-x.asked:
			r.found = x.read(ctx, r)
			close(r.over)
		}
	}
}

// Reread begins a reading, or tells of the one that goes on or has ended, if it is the same.
func (x *Readings) Reread(ctx context.Context, q command.RereadBackup) (command.BackupReading, error) {
	return x.ask(ctx, reading{
		of: q, what: "reading the backup", db: q.DatabaseID, name: q.Filename, bytes: q.SizeBytes,
		do: func(ctx context.Context) (*time.Time, error) {
			return x.files.Reread(ctx, q.DatabaseID, q.Filename, q.ManifestSHA256)
		},
	})
}

// Adopt begins to take a backup over, or tells of that, as Reread does.
func (x *Readings) Adopt(ctx context.Context, q command.AdoptBackup) (command.BackupReading, error) {
	return x.ask(ctx, reading{
		of: q, what: "taking the backup over", db: q.DatabaseID, name: q.Filename, bytes: q.SizeBytes,
		do: func(ctx context.Context) (*time.Time, error) { return nil, x.adopt(ctx, q) },
	})
}

func (x *Readings) ask(ctx context.Context, asked reading) (command.BackupReading, error) {
	r, err := x.begun(asked)
	if err != nil {
		return command.BackupReading{}, err
	}
	select {
	case <-r.over:
		return r.found, nil
	case <-ctx.Done():
	case <-time.After(x.Wait):
	}
	if time.Now().After(r.limit) { // a file system that hangs cannot be left
		return command.BackupReading{State: command.ReadingUnsure, Why: r.what + " hangs"}, nil
	}
	return command.BackupReading{State: command.ReadingRunning}, nil
}

// hangs is how much longer than it may a reading takes that does not end.
const hangs = time.Minute

func (x *Readings) begun(asked reading) (*reading, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := x.last; r != nil {
		if r.of == asked.of {
			return r, nil
		}
		select {
		case <-r.over:
		default:
			return nil, command.Refuse(command.ReasonCrowded, "the agent is %s %s of %s", r.what, r.name, r.db)
		}
	}
	asked.limit, asked.over = time.Now().Add(x.Limit(asked.bytes)+hangs), make(chan struct{})
	x.last = &asked
	x.asked <- x.last // there is room: the one before is over
	return x.last, nil
}

func (x *Readings) read(ctx context.Context, r *reading) command.BackupReading {
	ctx, cancel := jobs.Within(ctx, r.what, x.Limit(r.bytes))
	defer cancel()
	at, err := r.do(ctx)
	if err == nil {
		return command.BackupReading{State: command.ReadingWhole, VerifiedAt: at}
	}
	const says = " has failed; journalctl --unit pgherd-agent there says why"
	found := command.BackupReading{State: command.ReadingUnsure, Why: r.what + says}
	var damaged *store.DamagedError
	var away *store.UnavailableError
	var refused *command.Refusal
	var gone *peer.AwayError
	var unlike *peer.UnlikeError
	late := jobs.Overlong(ctx)
	switch {
	case errors.As(err, &damaged):
		found.State, found.Why = command.ReadingDamaged, damaged.What
	case fault.Has(err, fault.BackupNotFound):
		found.State, found.Why = command.ReadingDamaged, "it is not there"
	case late != nil:
		found.Why = late.Error()
	case errors.As(err, &gone):
		found.Why = gone.Error()
	case errors.As(err, &unlike):
		found.Why = unlike.Error()
	case errors.As(err, &away):
		found.Why = away.Why
	case errors.As(err, &refused):
		found.Why = refused.Message
	}
	x.log.Warn(r.what+" found it not whole", zap.String("databaseId", string(r.db)),
		zap.String("filename", string(r.name)), zap.String("found", string(found.State)), zap.String("why", found.Why), zap.Error(err))
	return found
}
