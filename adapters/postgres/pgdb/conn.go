package pgdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"time"
)

// driverConn and driverStmt are what the driver's connections and statements can do.
type (
	driverConn interface {
		driver.Conn
		driver.ConnBeginTx
		driver.ConnPrepareContext
		driver.QueryerContext
		driver.ExecerContext
		driver.Pinger
		driver.SessionResetter
		driver.Validator
		driver.NamedValueChecker
	}
	driverStmt interface {
		driver.Stmt
		driver.StmtQueryContext
		driver.StmtExecContext
	}
)

// conn is a connection of one generation. The driver asks the server to cancel what a context ends, and may then wait for the
// server for as long as that is silent: conn ends it instead.
type conn struct {
	driverConn
	socket     *socket
	of         *connector
	generation int64
}

// The driver has these times to notice that a context has ended; then the connection is cut.
const (
	statementGrace = 500 * time.Millisecond
	// commitGrace is longer: who gives up a COMMIT, which is never cancelled, does not know what came of it.
	commitGrace = 2 * time.Second
)

// within cuts the connection where ctx ends, and grace after that, before done is called.
func (c *conn) within(ctx context.Context, grace time.Duration) (done func()) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case <-over:
		case <-late.C:
			_ = c.socket.Close() // whoever reads from it gets an error
		}
	})
	return func() {
		stop()
		close(over)
	}
}

// Close implements driver.Conn. One that was cut is closed already: a context may end just after what it was for.
func (c *conn) Close() error {
	if err := c.driverConn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (c *conn) current() bool { return c.generation == c.of.generation.Load() }

// IsValid implements driver.Validator.
func (c *conn) IsValid() bool { return c.current() && c.driverConn.IsValid() }

// ResetSession implements driver.SessionResetter.
func (c *conn) ResetSession(ctx context.Context) error {
	if !c.current() {
		return driver.ErrBadConn
	}
	return c.driverConn.ResetSession(ctx)
}

// Ping implements driver.Pinger.
func (c *conn) Ping(ctx context.Context) error {
	defer c.within(ctx, 0)()
	return c.driverConn.Ping(ctx)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	defer c.within(ctx, statementGrace)()
	made, err := c.driverConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &stmt{made.(driverStmt), c}, nil
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	defer c.within(ctx, statementGrace)()
	return c.driverConn.ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	done := c.within(ctx, statementGrace)
	found, err := c.driverConn.QueryContext(ctx, query, args)
	return untilClosed(found, err, done)
}

// BeginTx implements driver.ConnBeginTx. The driver's own says READ WRITE, which overrides default_transaction_read_only: an
// operator who sets that on a primary before a switch-over would still see writes there. And it would cancel a COMMIT when the
// context ends, which makes PostgreSQL report success although the synchronous standby does not have it yet.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (_ driver.Tx, err error) {
	defer c.within(ctx, statementGrace)()
	made := tx{within: func(grace time.Duration) (done func()) { return c.within(ctx, grace) }}
	if o == (driver.TxOptions{}) {
		made.Tx, err = c.Begin()
	} else {
		made.Tx, err = c.driverConn.BeginTx(ctx, o)
	}
	return made, err
}

// tx is a transaction of a conn.
type tx struct {
	driver.Tx
	within func(grace time.Duration) (done func())
}

// Commit implements driver.Tx.
func (t tx) Commit() error {
	defer t.within(commitGrace)()
	return t.Tx.Commit()
}

// Rollback implements driver.Tx.
func (t tx) Rollback() error {
	defer t.within(statementGrace)()
	return t.Tx.Rollback()
}

// stmt is a prepared statement of a conn.
type stmt struct {
	driverStmt
	on *conn
}

// ExecContext implements driver.StmtExecContext.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	defer s.on.within(ctx, statementGrace)()
	return s.driverStmt.ExecContext(ctx, args)
}

// QueryContext implements driver.StmtQueryContext.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	done := s.on.within(ctx, statementGrace)
	found, err := s.driverStmt.QueryContext(ctx, args)
	return untilClosed(found, err, done)
}

// rows are those of a statement that is done when they are closed.
type rows struct {
	driver.Rows
	done func()
}

func untilClosed(found driver.Rows, err error, done func()) (driver.Rows, error) {
	if err != nil {
		done()
		return nil, err
	}
	return &rows{found, done}, nil
}

// Close implements driver.Rows.
func (r *rows) Close() error {
	defer r.done()
	return r.Rows.Close()
}
