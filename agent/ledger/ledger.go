package ledger

import (
	"context"
	"database/sql"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/locks"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/retire"
	"github.com/pgherd/pgherd/core/command"
)

// Ledger carries out commands: it admits them, has them done in their lanes, and concludes them. Those of one database or one
// operation run one after the other, all others in parallel.
type Ledger struct {
	server   Server
	db       *sql.DB // maintenance database
	urgent   *sql.DB // the same, for those in lane pushing
	settings pooler.Settings
	log      *zap.Logger

	Locks locks.Locks
	lanes

	// Retired drops the roles that could not be dropped when they ended.
	Retired *retire.Sweeper
	// Jobs are the long work; see OnJob.
	Jobs *jobs.Runner

	kinds     map[kindStep]handler
	traits    map[command.Kind][]Trait
	completes map[command.Kind]func(result []byte) (bool, error)
	completed []func(ctx context.Context, operation string) (bool, error)
	// beforeJobs and afterJobs undo what an operation left: before and after what its jobs left is discarded.
	beforeJobs, afterJobs []func(ctx context.Context, operation string) error
}

// New makes the ledger of a server. It connects on first use; Lead must have succeeded before Execute is called.
func New(s Server, settings pooler.Settings, log *zap.Logger) (*Ledger, error) {
	db, err := s.OpenMaintenance(s.connections())
	if err != nil {
		return nil, err
	}
	urgent, err := s.OpenMaintenance(maxPushing)
	if err != nil {
		return nil, err
	}
	x := &Ledger{
		server: s, db: db, urgent: urgent, settings: settings, log: log, lanes: newLanes(), Jobs: jobs.New(db, log),
		completes: map[command.Kind]func([]byte) (bool, error){}, kinds: map[kindStep]handler{},
		traits: map[command.Kind][]Trait{},
	}
	x.Retired = retire.NewSweeper(db, x.Soon, log)
	On(x, x.close)
	return x, nil
}

// Stop cancels running jobs, waits for them, but not for long, and closes the connections. The next agent resumes what it
// cancels.
func (l *Ledger) Stop() {
	l.Jobs.Stop()
	_, _ = l.db.Close(), l.urgent.Close() // nothing is lost with a connection
}

// DB is the pool of connections to the maintenance database.
func (l *Ledger) DB() *sql.DB { return l.db }

// Server says how to connect to the server.
func (l *Ledger) Server() Server { return l.server }
