package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"maps"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
)

// Server says how the agent connects to PostgreSQL.
type Server struct {
	Host     string // loopback address or socket folder
	Port     int
	Password string // of setup.AgentLogin
	// Instance names this run of the agent. A connection of an earlier run is refused by the ledger.
	Instance string
	Place    Place
	// Connections is the size of the pool of connections to the maintenance database; 0 means the largest, 5. One is enough.
	Connections int
}

func (s Server) connections() int {
	if s.Connections == 0 {
		return maxConnections
	}
	return min(s.Connections, maxConnections)
}

// Config is the agent's connection to one database.
func (s Server) Config(database string) pq.Config {
	return pq.Config{
		Host: s.Host, Port: uint16(s.Port), Database: database, User: setup.AgentLogin, Password: s.Password,
		SSLMode: pq.SSLModeDisable, ApplicationName: "pgherd-agent", ConnectTimeout: 10 * time.Second,
		ClientEncoding: "UTF8", Datestyle: "ISO, MDY", Runtime: maps.Clone(undisturbed),
	}
}

// undisturbed keeps what is set for a customer's database from the agent's sessions there. agent init sets it for the login too.
var undisturbed = map[string]string{
	ReadOnlyDefault: "off", StatementTimeout: "0", LockTimeout: "0", IdleTimeout: "0",
}

// OpenMaintenance returns a pool of connections to the maintenance database. Each begins by checking that this agent is still
// in charge, so that an agent that was suspended and resumed writes nothing.
func (s Server) OpenMaintenance(connections int) (*sql.DB, error) {
	connector, err := pq.NewConnectorConfig(s.Config(setup.MaintenanceDatabase))
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(checked{connector, s.claim()})
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// claim checks that this agent is in charge.
func (s Server) claim() string { return "SELECT ledger.assert_in_charge(" + pg.Quote(s.Instance) + ")" }

// InCharge returns an error unless this agent is in charge of the server.
func (l *Ledger) InCharge(ctx context.Context) error {
	_, err := l.db.ExecContext(ctx, l.server.claim())
	return err
}

// Version asks the server for its version, without a claim to be in charge of it.
func (s Server) Version(ctx context.Context) (found floors.Version, err error) {
	err = s.asks(func(db *sql.DB) error {
		var version string
		var number int
		err := db.QueryRowContext(ctx, floors.OfServer).Scan(&version, &number)
		found = floors.Server(version, number)
		return err
	})
	return found, err
}

// checked runs a statement on every new connection.
type checked struct {
	*pq.Connector
	statement string
}

// Connect implements driver.Connector.
func (c checked) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := pg.Run(ctx, conn, c.statement); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Once opens a connection to a database, runs statements in one transaction and one message, and closes it.
func (s Server) Once(ctx context.Context, database string, statements ...string) error {
	return pg.Once(ctx, s.Config(database), statements...)
}

// Open returns a pool of one connection to a customer's database, which runs nothing that could call a customer's code.
func (s Server) Open(database string) (*sql.DB, error) {
	connector, err := pq.NewConnectorConfig(s.Config(database))
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

// The parameters that the service sets. The timeouts are for the owner's login too.
const (
	StatementTimeout = "statement_timeout"
	LockTimeout      = "lock_timeout"
	IdleTimeout      = "idle_in_transaction_session_timeout"
	ReadOnlyDefault  = "default_transaction_read_only"
)
