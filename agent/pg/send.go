package pg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"
)

// Run sends statements over a bare connection, as one message.
func Run(ctx context.Context, conn driver.Conn, statements ...string) error {
	execer, ok := conn.(driver.ExecerContext)
	if !ok {
		return errors.New("the driver cannot send bare statements")
	}
	_, err := execer.ExecContext(ctx, strings.Join(statements, ";"), nil)
	return err
}

// Transaction is the message of statements in one transaction.
func Transaction(statements []string) string {
	return "BEGIN;" + strings.Join(statements, ";") + ";COMMIT"
}

// InsufficientPrivilege can be outdated: PostgreSQL may cache a list of a login's roles that it read while another session was
// adding to it.
const InsufficientPrivilege = "42501"

// freshTries is one more than a pool has connections at most, in case each of them has cached such a list.
const freshTries = MaxPool + 1

// Freshly repeats what was refused for lack of a privilege, each time over another connection: send must discard the connection
// that refused. Such a refusal has changed nothing.
func Freshly(send func() error) (err error) {
	for range freshTries {
		if err = send(); State(err) != InsufficientPrivilege {
			return err
		}
	}
	return err
}

// Once opens a connection, runs statements in one transaction and one message, and closes it.
func Once(ctx context.Context, config pq.Config, statements ...string) error {
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return err
	}
	return Freshly(func() error {
		conn, err := connector.Connect(ctx)
		if err != nil {
			return fmt.Errorf("connecting to %s: %w", config.Database, err)
		}
		return errors.Join(Run(ctx, conn, Transaction(statements)), conn.Close())
	})
}

// Atomically runs statements in one transaction and one message. Their values must already be quoted.
func Atomically(ctx context.Context, db *sql.DB, statements ...string) error {
	return Send(ctx, db, Transaction(statements))
}

// Send sends one message over a connection of the pool.
func Send(ctx context.Context, db *sql.DB, text string) error {
	return Freshly(func() error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.Raw(func(c any) error { return SendOver(ctx, c, text) })
	})
}

// SendOver sends one message over one connection.
func SendOver(ctx context.Context, c any, text string) error {
	conn, ok := c.(driver.Conn)
	if !ok {
		return errors.New("the driver has no bare connection")
	}
	err := Run(ctx, conn, text)
	if err == nil {
		return nil
	}
	// An error in the middle leaves the transaction open. If it cannot be rolled back, the connection is closed.
	if Run(context.WithoutCancel(ctx), conn, "ROLLBACK") != nil || State(err) == InsufficientPrivilege {
		return Discarded{Cause: err}
	}
	return err
}

// Discarded makes database/sql give up the connection, and keeps the cause.
type Discarded struct{ Cause error }

func (d Discarded) Error() string { return d.Cause.Error() }

func (d Discarded) Unwrap() []error { return []error{driver.ErrBadConn, d.Cause} }

// OutOfMemory is the SQLSTATE of what PostgreSQL says also while no lock is left.
const OutOfMemory = "53200"

// State is the SQLSTATE of an error of PostgreSQL; empty where it is none.
func State(err error) string {
	var p *pq.Error
	if errors.As(err, &p) {
		return string(p.Code)
	}
	return ""
}

// Quote writes a value as a literal.
func Quote(s string) string { return pq.QuoteLiteral(s) }

// Ident writes a name.
func Ident(s string) string { return pq.QuoteIdentifier(s) }

// MaxPool is how many connections a pool to the maintenance database has at most.
const MaxPool = 5
