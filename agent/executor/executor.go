package executor

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/locks"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/agent/retire"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Pooler is what the executor needs of PgBouncer; *pooler.Pooler implements it.
type Pooler interface {
	Sync(ctx context.Context, read pooler.Read) error
	SyncSoon(read pooler.Read)
	Evict(ctx context.Context, who pooler.Who) error
	Expel(ctx context.Context, who pooler.Who) (closed int, err error)
	Prove(ctx context.Context, entry, login, password string) error
	ProveRefused(ctx context.Context, entry, login, password string) error
	Full(ctx context.Context, entry string) (bool, error)
	EnterOutside(ctx context.Context) error
	Reconnect(ctx context.Context, database string) error
	Keeping(ctx context.Context, databases []string) (map[string][]string, error)
	EndIdle(ctx context.Context, ids []string, quiet time.Duration) (left []string, err error)
}

// Executor carries out commands. Those of one database or one operation run one after the other, all others in parallel.
type Executor struct {
	server   Server
	db       *sql.DB // maintenance database
	urgent   *sql.DB // the same, for those in lane pushing
	guarding *sql.DB // one connection, for Guard
	pooler   Pooler
	settings pooler.Settings
	log      *zap.Logger
	seldom   loop.Seldom // for what a customer can bring about again and again

	locks locks.Locks
	lanes

	changed   chan struct{} // wakes SweepChanged
	unwanted  chan struct{} // see Unwanted
	unsettled chan struct{} // wakes SettleSessions
	// Retired drops the roles that could not be dropped when they ended.
	Retired *retire.Sweeper

	// Jobs are the long work; see OnJob.
	Jobs *jobs.Runner
	// Replaced hears of each database whose place a copy has taken, before the control plane does.
	Replaced func(id.DatabaseID)
	// RemoveFiles removes every file that there is of a database.
	RemoveFiles func(context.Context, id.DatabaseID) error

	completes map[command.Kind]func(result []byte) (bool, error)
	kinds     map[kindStep]handler
}

// New makes an executor for a server. It connects on first use; Lead must have succeeded before Execute is called.
func New(s Server, p Pooler, settings pooler.Settings, log *zap.Logger) (*Executor, error) {
	db, err := s.OpenMaintenance(s.connections())
	if err != nil {
		return nil, err
	}
	urgent, err := s.OpenMaintenance(maxPushing)
	if err != nil {
		return nil, err
	}
	guarding, err := s.OpenMaintenance(1)
	if err != nil {
		return nil, err
	}
	x := &Executor{
		server: s, db: db, urgent: urgent, guarding: guarding, pooler: p, settings: settings, log: log,
		lanes: newLanes(), changed: make(chan struct{}, 1), unsettled: make(chan struct{}, 1),
		unwanted: make(chan struct{}, 1), Jobs: jobs.New(db, log), Replaced: func(id.DatabaseID) {},
		RemoveFiles: func(context.Context, id.DatabaseID) error { return nil },
		completes:   map[command.Kind]func([]byte) (bool, error){}, kinds: map[kindStep]handler{},
	}
	x.Retired = retire.NewSweeper(db, x.soon, log)
	on(x, x.ensureDatabase)
	on(x, x.setAccess)
	on(x, x.setAllowlist)
	on(x, x.configure)
	on(x, x.prepareRole)
	on(x, x.ensureOverlay)
	on(x, x.admitRole)
	on(x, x.changeLogin)
	on(x, x.removeRole)
	on(x, x.switchOver)
	on(x, x.discard)
	on(x, x.isolate)
	on(x, x.rejoin)
	on(x, x.purge)
	on(x, x.close)
	completing[command.EnsureDatabase](x, func(command.None) bool { return true })
	completing[command.Switch](x, func(command.Switched) bool { return true })
	completing[command.Isolate](x, func(command.None) bool { return true })
	completing[command.Rejoin](x, func(command.Rejoined) bool { return true })
	completing[command.Purge](x, func(command.None) bool { return true })
	return x, nil
}

// Stop cancels running jobs, waits for them, but not for long, and closes the connections. The next agent resumes what it
// cancels.
func (x *Executor) Stop() {
	x.Jobs.Stop()
	_, _, _ = x.db.Close(), x.urgent.Close(), x.guarding.Close() // nothing is lost with a connection
}

// DB is the pool of connections to the maintenance database.
func (x *Executor) DB() *sql.DB { return x.db }

// lockFor locks the operation first and then the database, so that two commands cannot deadlock. A login is locked with its
// database: stopping a database and changing a login exclude each other.
func (x *Executor) lockFor(ctx context.Context, c protocol.Command) (func(), error) {
	if c.OperationID == "" {
		return x.locks.Take(ctx, c.Resource)
	}
	first, err := x.locks.Take(ctx, command.OperationResource(id.OperationID(c.OperationID)))
	if err != nil || c.Kind == (command.Close{}).About().Kind {
		return first, err // the resource is the operation itself
	}
	database, _, _ := strings.Cut(c.Resource, "/login/")
	second, err := x.locks.Take(ctx, database)
	if err != nil {
		first()
		return nil, err
	}
	return func() { second(); first() }, nil
}

func databaseResource(id string) string { return "database/" + id }
