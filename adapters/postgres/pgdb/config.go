package pgdb

import (
	"database/sql"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/core/trace"
)

// Config says where the metadata database is and how much of its server one process may use. The zero value of a field means
// its default.
type Config struct {
	// URL is a PostgreSQL URL or key=value string. It may name several hosts: connections are made to the one that takes writes. It
	// contains a password, so no error or log of this package shows it.
	URL string
	// MaxConnections bounds the connections of this process; by default 16. The Notifier uses one more, and so does Watch.
	MaxConnections int
	// ConnectTimeout bounds one attempt to connect; by default 5 s.
	ConnectTimeout time.Duration
	// StatementTimeout ends a statement on the server; by default 10 s.
	StatementTimeout time.Duration
	// IdleInTransaction ends a transaction whose process has stopped in the middle of it, which releases its locks; by default 15
	// s.
	IdleInTransaction time.Duration
	// LockTimeout ends a wait for a lock, where the URL names no "lock_timeout"; by default nothing but StatementTimeout does.
	LockTimeout time.Duration
	// Brief is for a process that runs a few statements and ends: each is prepared when it runs, rather than all when the DB is
	// opened.
	Brief bool
	// Patience is how long awaited work waits for a server that does not answer, for each statement or transaction; by default 7 s.
	Patience time.Duration
	// Tracer shows transactions and statements in the traces of those for whom they run; by default there are no traces.
	Tracer trace.Tracer
}

// maxLifetime and maxIdleTime close connections, so that they move to a new primary in time.
const maxLifetime, maxIdleTime = 30 * time.Minute, 5 * time.Minute

func (c Config) withDefaults() Config {
	defaultTo(&c.MaxConnections, 16)
	defaultTo(&c.ConnectTimeout, 5*time.Second)
	defaultTo(&c.StatementTimeout, 10*time.Second)
	defaultTo(&c.IdleInTransaction, 15*time.Second)
	defaultTo(&c.Patience, patience)
	if c.Tracer == nil {
		c.Tracer = trace.Off{}
	}
	return c
}

func defaultTo[T comparable](value *T, to T) {
	var zero T
	if *value == zero {
		*value = to
	}
}

// settings are the run-time parameters of each session. Times come back in UTC whatever the server's zone is.
func (c Config) settings() map[string]string {
	return map[string]string{
		"timezone":                            "UTC",
		"default_transaction_isolation":       "read committed",
		"statement_timeout":                   milliseconds(c.StatementTimeout),
		"idle_in_transaction_session_timeout": milliseconds(c.IdleInTransaction),
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// driverConfig parses the URL; the settings override whatever the URL says about them.
func (c Config) driverConfig() (pq.Config, error) {
	cfg, err := parse(c.URL)
	if err != nil {
		return pq.Config{}, err
	}
	cfg.ConnectTimeout, cfg.ApplicationName = c.ConnectTimeout, "pgherd"
	runtime := map[string]string{}
	if c.LockTimeout > 0 {
		runtime["lock_timeout"] = milliseconds(c.LockTimeout)
	}
	for name, value := range cfg.Runtime {
		runtime[name] = value
	}
	for name, value := range c.settings() {
		runtime[name] = value
	}
	cfg.Runtime = runtime
	return cfg, nil
}

// silence is how much longer than a statement may take a server may be silent, before it is taken for dead.
const silence = 2 * time.Second

// pool makes a pool, whose server may be silent for as long as given; it does not connect.
func (c Config) pool(silent time.Duration) (*sqlx.DB, *connector, error) {
	cfg, err := c.driverConfig()
	if err != nil {
		return nil, nil, err
	}
	connector, err := newConnector(cfg, silent)
	if err != nil {
		return nil, nil, err
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "postgres")
	db.SetMaxOpenConns(c.MaxConnections)
	db.SetMaxIdleConns(c.MaxConnections)
	db.SetConnMaxLifetime(maxLifetime)
	db.SetConnMaxIdleTime(maxIdleTime)
	return db, connector, nil
}
