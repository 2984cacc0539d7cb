package executor

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/agent/versions"
)

// Server says how the agent connects to PostgreSQL.
type Server struct {
	Host     string // loopback address or socket folder
	Port     int
	Password string // of setup.AgentLogin
	// Instance names this run of the agent. A connection of an earlier run is refused by the ledger.
	Instance string
	// Connections is the size of the pool of connections to the maintenance database; 0 means the largest, 5. One is enough.
	Connections int
}

func (s Server) connections() int {
	if s.Connections == 0 {
		return maxConnections
	}
	return min(s.Connections, maxConnections)
}

// config is the agent's connection to one database.
func (s Server) config(database string) pq.Config {
	return pq.Config{
		Host: s.Host, Port: uint16(s.Port), Database: database, User: setup.AgentLogin, Password: s.Password,
		SSLMode: pq.SSLModeDisable, ApplicationName: "pgherd-agent", ConnectTimeout: 10 * time.Second,
		ClientEncoding: "UTF8", Datestyle: "ISO, MDY", Runtime: maps.Clone(undisturbed),
	}
}

// undisturbed keeps what is set for a customer's database from the agent's sessions there. agent init sets it for the login too.
var undisturbed = map[string]string{
	readOnlyDefault: "off", statementTimeout: "0", lockTimeout: "0", idleTimeout: "0",
}

// OpenMaintenance returns a pool of connections to the maintenance database. Each begins by checking that this agent is still
// in charge, so that an agent that was suspended and resumed writes nothing.
func (s Server) OpenMaintenance(connections int) (*sql.DB, error) {
	connector, err := pq.NewConnectorConfig(s.config(setup.MaintenanceDatabase))
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(checked{connector, s.claim()})
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// claim checks that this agent is in charge.
func (s Server) claim() string { return "SELECT ledger.assert_in_charge(" + quote(s.Instance) + ")" }

// InCharge returns an error unless this agent is in charge of the server.
func (x *Executor) InCharge(ctx context.Context) error {
	_, err := x.db.ExecContext(ctx, x.server.claim())
	return err
}

// Version asks the server for its version, without a claim to be in charge of it.
func (s Server) Version(ctx context.Context) (found versions.Found, err error) {
	err = s.asks(func(db *sql.DB) error {
		var version string
		var number int
		err := db.QueryRowContext(ctx, versions.OfServer).Scan(&version, &number)
		found = versions.Server(version, number)
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
	if err := run(ctx, conn, c.statement); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// run sends statements over a bare connection, as one message.
func run(ctx context.Context, conn driver.Conn, statements ...string) error {
	execer, ok := conn.(driver.ExecerContext)
	if !ok {
		return errors.New("the driver cannot send bare statements")
	}
	_, err := execer.ExecContext(ctx, strings.Join(statements, ";"), nil)
	return err
}

// once opens a connection to a database, runs statements in one transaction and one message, and closes it.
func (s Server) once(ctx context.Context, database string, statements ...string) error {
	connector, err := pq.NewConnectorConfig(s.config(database))
	if err != nil {
		return err
	}
	return freshly(func() error {
		conn, err := connector.Connect(ctx)
		if err != nil {
			return fmt.Errorf("connecting to %s: %w", database, err)
		}
		return errors.Join(run(ctx, conn, transaction(statements)), conn.Close())
	})
}

func transaction(statements []string) string {
	return "BEGIN;" + strings.Join(statements, ";") + ";COMMIT"
}

// insufficientPrivilege can be outdated: PostgreSQL may cache a list of a login's roles that it read while another session was
// adding to it.
const insufficientPrivilege = "42501"

// freshTries is one more than the pool's connections, in case each of them has cached such a list.
const freshTries = maxConnections + 1

// freshly repeats what was refused for lack of a privilege, each time over another connection: send must discard the connection
// that refused. Such a refusal has changed nothing.
func freshly(send func() error) (err error) {
	for range freshTries {
		if err = send(); sqlState(err) != insufficientPrivilege {
			return err
		}
	}
	return err
}

// atomically runs statements in one transaction and one message. Their values must already be quoted.
func atomically(ctx context.Context, db *sql.DB, statements ...string) error {
	return send(ctx, db, transaction(statements))
}

// send sends one message over a connection of the pool.
func send(ctx context.Context, db *sql.DB, text string) error {
	return freshly(func() error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.Raw(func(c any) error { return sendOver(ctx, c, text) })
	})
}

func sendOver(ctx context.Context, c any, text string) error {
	conn, ok := c.(driver.Conn)
	if !ok {
		return errors.New("the driver has no bare connection")
	}
	err := run(ctx, conn, text)
	if err == nil {
		return nil
	}
	// An error in the middle leaves the transaction open. If it cannot be rolled back, the connection is closed.
	if run(context.WithoutCancel(ctx), conn, "ROLLBACK") != nil || sqlState(err) == insufficientPrivilege {
		return discard{err}
	}
	return err
}

// discard makes database/sql give up the connection, and keeps the cause.
type discard struct{ cause error }

func (d discard) Error() string   { return d.cause.Error() }
func (d discard) Unwrap() []error { return []error{driver.ErrBadConn, d.cause} }
