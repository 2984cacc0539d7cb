// Package artifact makes backups of databases: it dumps one in an exported snapshot, stores the file with its manifest, and
// verifies it by restoring it, as stored, into an isolated copy under a login made for that one restore.
package artifact

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/lib/pq"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/locks"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// Config says how to reach PostgreSQL and what tools and bounds to use.
type Config struct {
	Host     string // a name, an address, or the folder of a unix socket
	Port     int
	User     string // the agent's own login: CREATEDB, CREATEROLE, BYPASSRLS, pg_read_all_data, no superuser
	Password string
	SSLMode  string // as in libpq; empty means disable, for the loopback

	Maintenance string // the database from which copies are created and dropped
	PgDump      string // path of pg_dump 16 or later
	// DumpAs is the system user of pg_dump, for an agent that runs as root; nil: the agent's own.
	DumpAs  *syscall.Credential `json:"-"`
	DataDir string              // on the databases' disk, which must have room for the copy of a verification; empty: no check

	RoomWait  time.Duration // how long a backup waits for room that others have; 0 means 10 min
	LookPause time.Duration // between two looks at the room that a backup uses; 0 means 1 s
	ReadyTime time.Duration // how long a restore's copy that is whole is safe from those that wait for room; 0 means 5 min

	LockWait    time.Duration    // how long a dump waits for a table's lock; 0 means 30 s
	CleanupTime time.Duration    // how long a canceled backup may take to remove its copy or login; 0 means 1 min
	Limits      backup.Limits    // how long a dump and a verification may take
	UploadTime  time.Duration    // how long an upload may take to be loaded; 0 means 1 h
	CountsOnly  bool             // take no digests of contents; copies are compared by numbers of rows
	Now         func() time.Time `json:"-"` // nil means the system's clock
	Log         *zap.Logger      `json:"-"` // nil means none

	// InCharge returns an error unless this agent is in charge of the server; nil means that it always is. See fenced.
	InCharge func(context.Context) error `json:"-"`
}

func (c *Config) complete() {
	if c.SSLMode == "" {
		c.SSLMode = "disable"
	}
	if c.LockWait == 0 {
		c.LockWait = 30 * time.Second
	}
	if c.CleanupTime == 0 {
		c.CleanupTime = time.Minute
	}
	c.Limits = c.Limits.OrDefault()
	if c.UploadTime == 0 {
		c.UploadTime = time.Hour
	}
	if c.RoomWait == 0 {
		c.RoomWait = 10 * time.Minute
	}
	if c.ReadyTime == 0 {
		c.ReadyTime = 5 * time.Minute
	}
	if c.LookPause == 0 {
		c.LookPause = time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.InCharge == nil {
		c.InCharge = func(context.Context) error { return nil }
	}
}

func (c *Config) lockWait() string { return milliseconds(c.LockWait) }

// milliseconds is a time as PostgreSQL's settings have it.
func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// sessionOptions override a customer's defaults in the agent's sessions.
const sessionOptions = "-c search_path=pg_catalog,pg_temp -c statement_timeout=0 -c lock_timeout=0" +
	" -c idle_in_transaction_session_timeout=0 -c default_transaction_read_only=off"

// dumpOptions make sessions of a dump's login read-only from their start, and fix how values are written: pg_dump leaves some of
// backup.DigestSettings, and how strings are read, to the defaults of the database.
const dumpOptions = sessionOptions + " -c default_transaction_read_only=on -c idle_session_timeout=0" +
	" -c DateStyle=ISO,MDY -c IntervalStyle=postgres -c extra_float_digits=3 -c bytea_output=hex -c TimeZone=UTC" +
	" -c lc_monetary=C -c quote_all_identifiers=off -c standard_conforming_strings=on"

// sessionPrefix begins the application_name of every session of a backup. A starting agent uses it to find and end its
// predecessor's sessions.
const sessionPrefix = "pgherd-backup-"

func sessionName(op id.OperationID) string { return sessionPrefix + string(op) }

// open returns a pool of one database for the sessions of one operation. The caller closes it.
func (c *Config) open(database string, op id.OperationID) (*sql.DB, error) {
	return c.openAs(sessionName(op), database, "")
}

func (c *Config) openAs(session, database, options string) (*sql.DB, error) {
	connector, err := pq.NewConnectorConfig(pq.Config{
		Host: c.Host, Port: uint16(c.Port), User: c.User, Password: c.Password, Database: database,
		SSLMode: pq.SSLMode(c.SSLMode), ApplicationName: session, Options: sessionOptions + options,
		ClientEncoding: "UTF8", Datestyle: "ISO, MDY",
	})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return sql.OpenDB(fenced{connector, c.InCharge}), nil
}

// fenced has each connection, to whatever database, begin by asking whether this agent is in charge. One that was suspended must
// not drop what its successor has made under the same name, nor begin a dump or a copy. A successor first takes charge and then
// ends the sessions of its predecessor: so a session of one that is no longer in charge is ended by it or goes no further than
// this. pg_dump, which connects by itself, needs the snapshot of such a session.
type fenced struct {
	driver.Connector
	inCharge func(context.Context) error
}

// Connect implements driver.Connector.
func (f fenced) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.inCharge(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// with runs fn with a pool of one database.
func (c *Config) with(database string, op id.OperationID, fn func(*sql.DB) error) error {
	db, err := c.open(database, op)
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

// Backuper makes and verifies backups. It is safe for concurrent use by different operations.
type Backuper struct {
	cfg          Config
	store        *store.Store
	turns        locks.Locks // by the operation as the names of its logins have it
	reservations *reservations
	// Crash is called at each of CrashPoints, so that a test can end the process there.
	Crash func(point string)
}

// New returns a Backuper that keeps its files in the store.
func New(cfg Config, files *store.Store) *Backuper {
	cfg.complete()
	return &Backuper{cfg: cfg, store: files, reservations: newReservations(cfg), Crash: func(string) {}}
}

// Close closes the Backuper's connection.
func (b *Backuper) Close() error { return b.reservations.close() }

// ForgetReservations removes those of a predecessor, of whose backups none runs any more. What is kept stays. A starting agent
// calls it after EndPredecessor.
func (b *Backuper) ForgetReservations(ctx context.Context) error {
	files, err := b.store.Disk()
	if err != nil {
		return err
	}
	return b.reservations.takeOver(ctx, diskroom.Disk(files.ID))
}

// CrashPoints names the moments at which tests crash a backup, in their order.
var CrashPoints = []string{
	"backup.reserved", "backup.after-snapshot", "backup.after-login", "backup.after-partial", "backup.after-sidecar-rename",
	"backup.after-manifest-rename",
	"backup.after-file-rename", "backup.after-commit", "backup.verify.role-created", "backup.verify.database-created",
	"backup.verify.restored", "backup.verify.shut", "backup.verify.granted", "backup.verify.proving",
	"backup.verify.database-dropped", "backup.verify.dropped", "backup.after-verified",
}

// EndPredecessor ends every backup session that is open in the cluster, pg_dump's and restores' included. A starting agent
// calls it before anything else runs backups.
func (b *Backuper) EndPredecessor(ctx context.Context) error {
	return b.cfg.with(b.cfg.Maintenance, "", func(db *sql.DB) error {
		_, err := joblogin.EndSessions(ctx, db, joblogin.RunPatience, `application_name LIKE $1 || '%' AND (usename = current_user
			OR usename ~ '^`+setup.DumpPrefix+`' OR usename IN (SELECT name FROM ledger.copy))`, sessionPrefix)
		if err != nil {
			return fmt.Errorf("end the predecessor's sessions: %w", err)
		}
		return nil
	})
}
