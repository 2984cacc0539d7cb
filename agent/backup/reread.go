package backup

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
)

// Readings read backups again, one at a time, beside all jobs. Only this process knows of them.
type Readings struct {
	// Wait is how long a question waits for the end of a reading, and Limit how long a reading of so many bytes may take.
	Wait  time.Duration
	Limit func(bytes int64) time.Duration

	files *store.Store
	log   *zap.Logger
	asked chan *reading

	mu   sync.Mutex
	last *reading // the one that goes on, or has ended last
}

type reading struct {
	of    command.RereadBackup
	limit time.Time
	over  chan struct{}
	found command.BackupReading // once it is over
}

// rereadWait is Readings.Wait.
const rereadWait = 20 * time.Second

// NewReadings returns readings of what a store has. They are done in Run.
func NewReadings(files *store.Store, log *zap.Logger) *Readings {
	return &Readings{Wait: rereadWait, Limit: backup.ReadingTime, files: files, log: log, asked: make(chan *reading, 1)}
}

// Run reads what is asked for until ctx ends.
func (x *Readings) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-x.asked:
			r.found = x.read(ctx, r.of)
			close(r.over)
		}
	}
}

// Reread begins a reading, or tells of the one that goes on or has ended, if it is the same.
func (x *Readings) Reread(ctx context.Context, q command.RereadBackup) (command.BackupReading, error) {
	r, err := x.begun(q)
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
		return command.BackupReading{State: command.ReadingUnsure, Why: "reading the backup hangs"}, nil
	}
	return command.BackupReading{State: command.ReadingRunning}, nil
}

// hangs is how much longer than it may a reading takes that does not end.
const hangs = time.Minute

func (x *Readings) begun(q command.RereadBackup) (*reading, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := x.last; r != nil {
		if r.of == q {
			return r, nil
		}
		select {
		case <-r.over:
		default:
			return nil, command.Refuse(command.ReasonCrowded, "the backup %s of %s is being read", r.of.Filename, r.of.DatabaseID)
		}
	}
	x.last = &reading{of: q, limit: time.Now().Add(x.Limit(q.SizeBytes) + hangs), over: make(chan struct{})}
	x.asked <- x.last // there is room: the one before is over
	return x.last, nil
}

func (x *Readings) read(ctx context.Context, q command.RereadBackup) command.BackupReading {
	ctx, cancel := jobs.Within(ctx, "reading the backup", x.Limit(q.SizeBytes))
	defer cancel()
	at, err := x.files.Reread(ctx, q.DatabaseID, q.Filename, q.ManifestSHA256)
	if err == nil {
		return command.BackupReading{State: command.ReadingWhole, VerifiedAt: at}
	}
	found := command.BackupReading{State: command.ReadingUnsure, Why: "it could not be read; the agent's log says why"}
	var damaged *store.DamagedError
	var away *store.UnavailableError
	late := jobs.Overlong(ctx)
	switch {
	case errors.As(err, &damaged):
		found.State, found.Why = command.ReadingDamaged, damaged.What
	case late != nil:
		found.Why = late.Error()
	case errors.As(err, &away):
		found.Why = away.Why
	}
	x.log.Warn("a backup was read again, and was not found whole", zap.String("databaseId", string(q.DatabaseID)),
		zap.String("filename", string(q.Filename)), zap.String("found", string(found.State)), zap.String("why", found.Why),
		zap.Error(err))
	return found
}
