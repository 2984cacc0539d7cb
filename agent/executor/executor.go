package executor

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/locks"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/id"
)

// Pooler is what the executor needs of PgBouncer; *pooler.Pooler implements it.
type Pooler interface {
	Sync(ctx context.Context, read pooler.Read) error
	Evict(ctx context.Context, who pooler.Who) error
	Expel(ctx context.Context, who pooler.Who) (closed int, err error)
	Prove(ctx context.Context, entry, login, password string) error
	ProveRefused(ctx context.Context, entry, login, password string) error
	Full(ctx context.Context, entry string) (bool, error)
}

// Executor carries out commands. Those of one database or one operation run one after the other, all others in parallel.
type Executor struct {
	server   Server
	db       *sql.DB // maintenance database
	urgent   *sql.DB // the same, for those in lane pushing
	pooler   Pooler
	settings pooler.Settings
	backups  Backups
	log      *zap.Logger

	locks locks.Locks
	lanes

	changed chan struct{} // wakes SweepChanged
	buried  chan struct{} // wakes SweepDead

	// BackupPause is before the second attempt at a backup whose first was cut short; it grows. 0 means 1 s. Set it before the
	// first command.
	BackupPause  time.Duration
	lastAttempts gauge // at backups

	jobsMu sync.Mutex
	jobs   map[string]*job // by operation
}

// New makes an executor for a server. It connects on first use; Lead must have succeeded before Execute is called.
func New(s Server, p Pooler, settings pooler.Settings, b Backups, log *zap.Logger) (*Executor, error) {
	db, err := s.openMaintenance(s.connections())
	if err != nil {
		return nil, err
	}
	urgent, err := s.openMaintenance(maxPushing)
	if err != nil {
		return nil, err
	}
	return &Executor{
		server: s, db: db, urgent: urgent, pooler: p, settings: settings, backups: b, log: log,
		lanes: newLanes(), changed: make(chan struct{}, 1), buried: make(chan struct{}, 1), lastAttempts: newGauge(1),
		jobs: map[string]*job{},
	}, nil
}

// Stop cancels running backups, waits for them, but no longer than stopTime, and closes the connections. The next agent resumes
// what it cancels.
func (x *Executor) Stop() {
	x.stopJobs()
	_, _ = x.db.Close(), x.urgent.Close() // nothing is lost with a connection
}

// DB is the pool of connections to the maintenance database.
func (x *Executor) DB() *sql.DB { return x.db }

// commandTime bounds one command. Its sender may have given up long before; the outcome stays in the ledger.
const commandTime = 2 * time.Minute

// Execute carries out a command and returns its result. AsRefusal turns every error into a definite refusal; after one with the
// reason "unavailable", a repeated command continues where this one stopped.
func (x *Executor) Execute(ctx context.Context, c protocol.Command) (json.RawMessage, error) {
	do, err := x.read(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	release, err := x.lockFor(ctx, c)
	if err != nil {
		return nil, err
	}
	defer release()
	v, err := x.admit(ctx, c)
	switch {
	case err != nil:
		return nil, x.withGenerations(ctx, c, err)
	case !v.goOn:
		return v.result, nil
	}
	result, err := do(ctx)
	if err != nil {
		return nil, x.withGenerations(ctx, c, x.abandon(ctx, c, err))
	}
	return result, nil
}

// action carries one command out.
type action func(ctx context.Context) (json.RawMessage, error)

// read checks a command before it is entered into the ledger, and finds the function that carries it out.
func (x *Executor) read(c protocol.Command) (action, error) {
	kind := map[protocol.Kind]func(protocol.Command) (action, error){
		protocol.EnsureDatabase: x.ensureDatabase, protocol.SetAccess: x.setAccess, protocol.SetAllowlist: x.setAllowlist,
		protocol.EnsureLogin: x.ensureLogin, protocol.RunBackup: x.runBackup, protocol.CloseOperation: x.closeOperation,
	}[c.Kind]
	if kind == nil {
		return nil, refuse(protocol.ReasonNoRoute, "this agent does not know the command")
	}
	_, opErr := id.Parse[id.OperationID](c.OperationID)
	switch {
	case c.OperationID != "" && opErr != nil:
		return nil, refuse(protocol.ReasonInvalid, "operationId is no UUID")
	case c.OperationID == "" && c.Kind != protocol.SetAllowlist:
		return nil, refuse(protocol.ReasonInvalid, "%s belongs to an operation", c.Kind)
	case c.Step == "" || c.Resource == "" || c.Epoch < 0 || c.Generation < 0:
		return nil, refuse(protocol.ReasonInvalid, "step, resource, epoch or generation cannot be")
	case c.PayloadHash != protocol.Hash(c.Payload):
		return nil, refuse(protocol.ReasonInvalid, "payloadHash is not that of the payload")
	}
	return kind(c)
}

// lockFor locks the operation first and then the database, so that two commands cannot deadlock. A login is locked with its
// database: stopping a database and changing a login exclude each other.
func (x *Executor) lockFor(ctx context.Context, c protocol.Command) (func(), error) {
	if c.OperationID == "" {
		return x.locks.Take(ctx, c.Resource)
	}
	first, err := x.locks.Take(ctx, protocol.OperationResource(c.OperationID))
	if err != nil || c.Kind == protocol.CloseOperation {
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

func readPayload(c protocol.Command, to any) error {
	if err := decodeStrict(c.Payload, to); err != nil {
		return refuse(protocol.ReasonInvalid, "the payload cannot be read")
	}
	return nil
}

// databaseOf checks that a payload is about the resource that the command names.
func databaseOf(c protocol.Command, databaseID string) (id.DatabaseID, error) {
	db, err := id.Parse[id.DatabaseID](databaseID)
	if err != nil || c.Resource != protocol.DatabaseResource(databaseID) {
		return "", refuse(protocol.ReasonInvalid, "databaseId is no UUID, or not the command's resource")
	}
	return db, nil
}

// Size returns the size of a database on disk in bytes.
func (x *Executor) Size(ctx context.Context, db id.DatabaseID) (int64, error) {
	const query = `SELECT pg_database_size(p.oid) FROM ledger.database d JOIN pg_database p ON p.oid = d.oid WHERE d.id = $1`
	var size sql.NullInt64
	err := x.sizing.run(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, sizeTime)
		defer cancel()
		return x.db.QueryRowContext(ctx, query, string(db)).Scan(&size)
	})
	if errors.Is(err, sql.ErrNoRows) || err == nil && !size.Valid {
		return 0, refuse(protocol.ReasonNotFound, "the server has no database %s", db)
	}
	return size.Int64, err
}
