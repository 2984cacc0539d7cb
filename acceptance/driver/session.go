package driver

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/acceptance/stack"
)

// applications connect to the real service.
type applications struct{ r *realService }

const statementTime = 20 * time.Second

// pooled is the connector of a log-in through the pooler: with verified TLS, from the application's address.
func (a applications) pooled(l spec.Login) (*pq.Connector, error) {
	a.r.secrets.add(l.Password)
	connector, err := pq.NewConnector(a.r.at(l.At).PoolerURL(l.Database, l.Username, l.Password))
	if err == nil {
		connector.Dialer(from{address: l.From})
	}
	return connector, err
}

// from dials from a given address. The pooler's host name stands for the loopback address 127.0.0.1.
type from struct{ address netip.Addr }

func (f from) Dial(network, to string) (net.Conn, error) {
	return f.DialTimeout(network, to, statementTime)
}

func (f from) DialTimeout(network, to string, limit time.Duration) (net.Conn, error) {
	_, port, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: limit, LocalAddr: &net.TCPAddr{IP: f.address.AsSlice()}}
	return d.Dial(network, net.JoinHostPort("127.0.0.1", port))
}

// connect implements spec.World.Connect.
func (a applications) connect(l spec.Login) (spec.Session, error) {
	connector, err := a.pooled(l)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	pool := sql.OpenDB(connector)
	connection, err := pool.Conn(ctx)
	if err == nil {
		_, err = connection.ExecContext(ctx, "SELECT 1")
	}
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return session{pool: pool, connection: connection}, nil
}

// session implements spec.Session.
type session struct {
	pool       *sql.DB
	connection *sql.Conn
}

func (s session) exec(statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	_, err := s.connection.ExecContext(ctx, statement, args...)
	return err
}

// Write implements spec.Session.
func (s session) Write(notes ...string) error {
	err := s.exec("CREATE TABLE IF NOT EXISTS note (body text)")
	for _, note := range notes {
		err = errors.Join(err, s.exec("INSERT INTO note VALUES ($1)", note))
	}
	return err
}

// Say implements spec.Talk.
func (s session) Say(statement string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	return stack.Column(ctx, s.connection, statement)
}

// Alive implements spec.Session.
func (s session) Alive() bool { return s.exec("SELECT 1") == nil }

// endTime is how long to wait for a closed connection to show: less than a client waits in the pooler's queue.
const endTime = 10 * time.Second

// Ended implements spec.Session.
func (s session) Ended() bool {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	_, err := s.connection.ExecContext(ctx, "SELECT 1")
	return err != nil && ctx.Err() == nil
}

// Close implements spec.Session.
func (s session) Close() {
	_ = s.connection.Close() // it may be closed already: that is what stories are about
	_ = s.pool.Close()
}

// holdBackup locks the application's table, so that no dump gets past it.
func (a applications) holdBackup(db spec.Created) (release func(), err error) {
	opened, err := a.connect(db.Login())
	if err != nil {
		return nil, err
	}
	holder := opened.(session)
	for _, statement := range []string{"BEGIN", "LOCK TABLE note IN ACCESS EXCLUSIVE MODE"} {
		if err := holder.exec(statement); err != nil {
			holder.Close()
			return nil, err
		}
	}
	return holder.Close, nil
}

// spoil adds a table to an extension: then no dump holds it.
func (a applications) spoil(db spec.Created) error {
	_, err := a.Run(db.Login(), "CREATE EXTENSION citext", "CREATE TABLE orders (id int)", "INSERT INTO orders VALUES (1)",
		"ALTER EXTENSION citext ADD TABLE orders")
	return err
}

// restore loads a file with psql into an empty database of a server that knows none of our logins.
func (a applications) restore(file []byte) ([]string, error) {
	name := fmt.Sprintf("restored_%d", a.r.restores.Add(1))
	if _, err := query(a.r.Metadata.URL("postgres"), statementTime, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	dump, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	psql := exec.Command(a.r.PsqlPath(), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", a.r.Metadata.URL(name))
	psql.Stdin = bytes.NewReader(dump)
	if out, err := psql.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("psql: %w: %s", err, out)
	}
	return query(a.r.Metadata.URL(name), statementTime, "SELECT body FROM note")
}

// Run implements spec.SQL.
func (a applications) Run(l spec.Login, statements ...string) ([]string, error) {
	connector, err := a.pooled(l)
	if err != nil {
		return nil, err
	}
	return statementsOn(sql.OpenDB(connector), statementTime, statements...)
}

// Direct implements spec.SQL.
func (a applications) Direct(l spec.Login, statements ...string) ([]string, error) {
	return query(a.r.Server.URLFor(l.Username, l.Password, l.Database), statementTime, statements...)
}

// Psql implements spec.SQL.
func (a applications) Psql(connectionString, statement string) (string, error) {
	psql := exec.Command(a.r.PsqlPath(), "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement)
	psql.Env = append(os.Environ(), "PGSSLROOTCERT="+a.r.CAFile(), "PGCONNECT_TIMEOUT=10")
	psql.Args = append(psql.Args, "-d", connectionString)
	out, err := psql.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Talk implements spec.SQL.
func (a applications) Talk(l spec.Login) (spec.Talk, error) {
	opened, err := a.connect(l)
	if err != nil {
		return nil, err
	}
	return opened.(session), nil
}

// State implements spec.SQL.
func (a applications) State(err error) string {
	if p := pq.As(err); p != nil {
		return string(p.Code)
	}
	return ""
}

// query runs statements over a connection of their own and returns the first column of the last one's rows.
func query(connection string, limit time.Duration, statements ...string) ([]string, error) {
	pool, err := sql.Open("postgres", connection)
	if err != nil {
		return nil, err
	}
	return statementsOn(pool, limit, statements...)
}

func statementsOn(pool *sql.DB, limit time.Duration, statements ...string) (rows []string, err error) {
	pool.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, pool.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for _, statement := range statements {
		if rows, err = stack.Column(ctx, pool, statement); err != nil {
			return nil, err
		}
	}
	return rows, nil
}
