// Package pgdb reaches a metadata database and runs statements there: on the host of several that takes writes, prepared once for
// each connection, again where they lost a race or their connection, and for no longer than whoever waits for them.
package pgdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/ports"
)

// DB is a metadata database. It is safe for concurrent use.
type DB struct {
	pool      *sqlx.DB
	connector *connector
	refusals  map[string]func() error
	current   atomic.Pointer[prepared]
	patience  time.Duration
	tracer    trace.Tracer

	watch   *sqlx.DB // of one connection
	answers atomic.Pointer[answering]

	mu      sync.Mutex // held while statements are prepared
	retired []*prepared
}

// Open connects, calls check, and prepares every statement unless Brief says otherwise. The errors are ErrURL, ErrTarget, those
// of check, or those of the connection. A statement that breaks the unique constraint of a refusal fails with that.
func Open(
	ctx context.Context, c Config, refusals map[string]func() error, check func(context.Context, *sqlx.DB) error,
) (*DB, error) {
	c = c.withDefaults()
	pool, connector, err := c.pool(c.StatementTimeout + silence)
	if err != nil {
		return nil, err
	}
	one := c
	one.MaxConnections = 1
	watch, _, err := one.pool(firstLook)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	d := &DB{pool: pool, connector: connector, refusals: refusals, watch: watch, patience: c.Patience, tracer: c.Tracer}
	d.answers.Store(newAnswering())
	err = check(ctx, pool)
	switch {
	case err != nil:
	case c.Brief:
		d.current.Store(&prepared{})
	default:
		err = d.prepare(ctx, nil)
	}
	if err != nil {
		return nil, errors.Join(translate(ctx, err), d.Close())
	}
	return d, nil
}

// Alone calls fn with a pool that is closed afterwards, for work that needs no DB.
func Alone(ctx context.Context, c Config, fn func(context.Context, *sqlx.DB) error) error {
	c = c.withDefaults()
	pool, _, err := c.pool(c.StatementTimeout + silence)
	if err != nil {
		return err
	}
	return errors.Join(translate(ctx, fn(ctx, pool)), pool.Close())
}

// Close ends every connection.
func (d *DB) Close() error { return errors.Join(d.pool.Close(), d.watch.Close()) }

// Ping checks that the metadata database answers; a host's readiness depends on it. It fails at once while Watch finds that there
// is no answer.
func (d *DB) Ping(ctx context.Context) error {
	if d.Away() {
		return errAway
	}
	return translate(ctx, d.pool.PingContext(ctx))
}

// Update runs fn in one transaction. It runs again after a serialization failure or a deadlock, and after the connection
// was lost before the commit: all of these have left nothing behind. Where the context has no deadline, it gets one, and a
// shorter one where the work is awaited.
func (d *DB) Update(ctx context.Context, fn func(ctx context.Context, s Session) error) error {
	return d.traced(ctx, trace.Span{Name: "metadata transaction"}, func(ctx context.Context) error {
		return d.again(ctx, func(ctx context.Context) error { return d.transact(ctx, fn) })
	})
}

func (d *DB) transact(ctx context.Context, fn func(ctx context.Context, s Session) error) error {
	tx, err := d.pool.BeginTxx(ctx, nil)
	if err != nil {
		return translate(ctx, err)
	}
	defer func() { _ = tx.Rollback() }() // its own error adds nothing to the one returned
	if err := fn(ctx, Session{db: d, set: d.current.Load(), tx: tx}); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return translate(ctx, ctx.Err())
	}
	return committed(ctx, tx.Commit())
}

// committed interprets the error of a commit. A commit that database/sql itself refused, because the context had ended, was
// never sent.
func committed(ctx context.Context, err error) error {
	unsent := errors.Is(err, sql.ErrTxDone) || ctx.Err() != nil && errors.Is(err, ctx.Err())
	if err == nil || unsent || rolledBack(err) || !disconnected(err) && ctx.Err() == nil {
		return translate(ctx, err)
	}
	return fmt.Errorf("%w: %w: %w", ErrCommitUnknown, ports.ErrUnavailable, err)
}

// View is a session in no transaction: a statement whose connection was lost is sent again.
func (d *DB) View() Session { return Session{db: d} }
