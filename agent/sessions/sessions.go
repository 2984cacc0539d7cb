// Package sessions opens the connections over which databases are dumped, copied and compared. Each of them names its operation
// to PostgreSQL, and begins only while this agent is in charge of the server.
package sessions

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/id"
)

// Server says how the agent connects to PostgreSQL. It uses no TLS: that is for the loopback.
type Server struct {
	Host     string // a name, an address, or the folder of a unix socket
	Port     int
	User     string // the agent's own login: CREATEDB, CREATEROLE, BYPASSRLS, pg_read_all_data, no superuser
	Password string

	Maintenance string // the database from which copies are created and dropped
	// InCharge returns an error unless this agent is in charge of the server; nil means that it always is. See fenced.
	InCharge func(context.Context) error
}

// Options override a customer's defaults in the agent's sessions. Some of those change how PostgreSQL writes names, values and
// definitions, which are compared with those of another database.
const Options = "-c search_path=pg_catalog,pg_temp -c statement_timeout=0 -c lock_timeout=0" +
	" -c idle_in_transaction_session_timeout=0 -c default_transaction_read_only=off" +
	" -c IntervalStyle=postgres -c extra_float_digits=3 -c bytea_output=hex -c TimeZone=UTC -c lc_monetary=C" +
	" -c quote_all_identifiers=off -c standard_conforming_strings=on"

// prefix begins the application_name of every session of an operation. A starting agent uses it to find and end its predecessor's
// sessions.
const prefix = "pgherd-backup-"

// Name is the application_name of the sessions of an operation.
func Name(op id.OperationID) string { return prefix + string(op) }

// Open returns a pool of one database for the sessions of one operation. The caller closes it.
func (s *Server) Open(database string, op id.OperationID) (*sql.DB, error) {
	return s.OpenAs(Name(op), database, "")
}

// OpenAs is Open with another application_name and further options.
func (s *Server) OpenAs(name, database, options string) (*sql.DB, error) {
	connector, err := pq.NewConnectorConfig(pq.Config{
		Host: s.Host, Port: uint16(s.Port), User: s.User, Password: s.Password, Database: database,
		SSLMode: pq.SSLModeDisable, ApplicationName: name, Options: Options + options,
		ClientEncoding: "UTF8", Datestyle: "ISO, MDY",
	})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return sql.OpenDB(fenced{connector, s}), nil
}

// fenced has each connection, to whatever database, begin by asking whether this agent is in charge. One that was suspended must
// not drop what its successor has made under the same name, nor begin a dump or a copy. A successor first takes charge and then
// ends the sessions of its predecessor: so a session of one that is no longer in charge is ended by it or goes no further than
// this. pg_dump, which connects by itself, needs the snapshot of such a session.
type fenced struct {
	driver.Connector
	server *Server
}

// Connect implements driver.Connector.
func (f fenced) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.server.inCharge(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (s *Server) inCharge(ctx context.Context) error {
	if s.InCharge == nil {
		return nil
	}
	return s.InCharge(ctx)
}

// With runs fn with a pool of one database.
func (s *Server) With(database string, op id.OperationID, fn func(*sql.DB) error) error {
	db, err := s.Open(database, op)
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

// Admin runs fn with a pool of the maintenance database. Sessions of no operation are those of the agent itself.
func (s *Server) Admin(op id.OperationID, fn func(admin *sql.DB) error) error {
	return s.With(s.Maintenance, op, fn)
}

// Connect opens one connection as the agent.
func (s *Server) Connect(ctx context.Context, database string, op id.OperationID) (*pgconn.PgConn, error) {
	return s.Dial(ctx, s.User, s.Password, database, map[string]string{"application_name": Name(op), "options": Options})
}

// Dial opens one connection as any login, fenced like the others. Its errors hold no password.
func (s *Server) Dial(
	ctx context.Context, user, password, database string, parameters map[string]string,
) (*pgconn.PgConn, error) {
	cfg, err := pgconn.ParseConfig("sslmode=disable host=" + quoted(s.Host) + " port=" + strconv.Itoa(s.Port) +
		" user=" + quoted(user) + " dbname=" + quoted(database))
	if err != nil {
		return nil, errors.New("connect: bad address")
	}
	if parameters["client_encoding"] == "" {
		parameters["client_encoding"] = "UTF8" // names are compared with those of other sessions
	}
	cfg.Password, cfg.RuntimeParams = password, parameters
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := s.inCharge(ctx); err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}

func quoted(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

// cleanupTime is how long a canceled operation, or a sweep, may take to remove a copy or login.
const cleanupTime = time.Minute

// CleanUp removes something. Once the operation is canceled, that may take cleanupTime; what is left then a later sweep removes.
func (s *Server) CleanUp(ctx context.Context, remove func(context.Context) error) error {
	return loop.Persist(ctx, cleanupTime, remove)
}

// Bounded is a context that ends after cleanupTime.
func (s *Server) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cleanupTime)
}

// EndPredecessor ends every session of an operation that is open in the cluster, pg_dump's and restores' included. A starting
// agent calls it before any operation begins.
func (s *Server) EndPredecessor(ctx context.Context) error {
	return s.Admin("", func(admin *sql.DB) error {
		_, err := joblogin.EndSessions(ctx, admin, joblogin.RunPatience, `application_name LIKE $1 || '%' AND (usename = current_user
			OR usename ~ '^`+setup.DumpPrefix+`' OR usename IN (SELECT name FROM ledger.copy))`, prefix)
		if err != nil {
			return fmt.Errorf("end the predecessor's sessions: %w", err)
		}
		return nil
	})
}

// EndOperation ends the sessions of an operation.
func EndOperation(ctx context.Context, admin *sql.DB, op id.OperationID) error {
	_, err := joblogin.EndSessions(ctx, admin, joblogin.RunPatience, `application_name = $1`, Name(op))
	if err != nil {
		return fmt.Errorf("end the sessions of an operation: %w", err)
	}
	return nil
}
