package pgdb

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/ports"
)

// Session runs statements: in a transaction, or each by itself.
type Session struct {
	db  *DB
	set *prepared
	tx  *sqlx.Tx // nil outside a transaction
}

// InView reports whether the session is in no transaction: then it neither writes nor locks.
func (s Session) InView() bool { return s.tx == nil }

// Run calls fn with the statement, as prepared on the connection that it runs on.
func (s Session) Run(ctx context.Context, st *Statement, fn func(context.Context, *sqlx.Stmt) error) error {
	return s.db.traced(ctx, trace.Span{Name: "metadata statement", Statement: st.Text()}, func(ctx context.Context) error {
		return s.run(ctx, st, fn)
	})
}

func (s Session) run(ctx context.Context, st *Statement, fn func(context.Context, *sqlx.Stmt) error) error {
	if s.tx == nil {
		return s.db.again(ctx, func(ctx context.Context) error { return s.db.outside(ctx, st, fn) })
	}
	if ctx.Err() != nil {
		return translate(ctx, ctx.Err())
	}
	if stmt := s.set.of(st); stmt != nil {
		return s.db.refusal(ctx, st, fn(ctx, s.tx.StmtxContext(ctx, stmt)))
	}
	return s.db.refusal(ctx, st, once(ctx, s.tx, st, fn))
}

// traced does work that a trace shows. What the caller makes of its outcome is none of the metadata's.
func (d *DB) traced(ctx context.Context, s trace.Span, work func(context.Context) error) error {
	ctx, ended := d.tracer.Begin(ctx, s)
	err := work(ctx)
	state := State(err)
	ended(state, state != "" || errors.Is(err, ports.ErrUnavailable))
	return err
}

// outside calls fn with the statement, in no transaction.
func (d *DB) outside(ctx context.Context, st *Statement, fn func(context.Context, *sqlx.Stmt) error) error {
	if stmt := d.current.Load().of(st); stmt != nil {
		return d.refusal(ctx, st, fn(ctx, stmt))
	}
	return d.refusal(ctx, st, once(ctx, d.pool, st, fn))
}

// Once runs a statement for somebody who waits, in no transaction, and never again.
func (d *DB) Once(ctx context.Context, st *Statement, args ...any) error {
	ctx, end, err := d.bounded(ports.Awaited(ctx))
	if err != nil {
		return err
	}
	defer end()
	return d.outside(ctx, st, func(ctx context.Context, stmt *sqlx.Stmt) error {
		_, err := stmt.ExecContext(ctx, args...)
		return err
	})
}

// once prepares a statement for this time only, where the Store is opened with Config.Brief.
func once(
	ctx context.Context, on sqlx.PreparerContext, st *Statement, fn func(context.Context, *sqlx.Stmt) error,
) error {
	stmt, err := sqlx.PreparexContext(ctx, on, st.Text())
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }() // what it leaves ends with the connection
	return fn(ctx, stmt)
}

// One reads one row; ErrNoRow when there is none.
func One[T any](ctx context.Context, s Session, st *Statement, args ...any) (T, error) {
	var row, none T
	err := s.Run(ctx, st, func(ctx context.Context, stmt *sqlx.Stmt) error { return stmt.GetContext(ctx, &row, args...) })
	if err != nil {
		return none, err // scanning may have set its pointers
	}
	return row, nil
}

// All reads every row.
func All[T any](ctx context.Context, s Session, st *Statement, args ...any) ([]T, error) {
	var rows []T
	err := s.Run(ctx, st, func(ctx context.Context, stmt *sqlx.Stmt) error {
		rows = rows[:0]
		return stmt.SelectContext(ctx, &rows, args...)
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// Locked reads or changes one row and locks it until the transaction ends; a view cannot lock.
func Locked[T any](ctx context.Context, s Session, st *Statement, args ...any) (T, error) {
	if s.tx == nil {
		var none T
		return none, ports.ErrReadOnly
	}
	return One[T](ctx, s, st, args...)
}

func (s Session) exec(ctx context.Context, st *Statement, args ...any) (changed int64, err error) {
	err = s.Run(ctx, st, func(ctx context.Context, stmt *sqlx.Stmt) error {
		result, err := stmt.ExecContext(ctx, args...)
		if err == nil {
			changed, err = result.RowsAffected()
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return changed, nil
}

// Exec runs a statement, also in a view: one that may run twice.
func (s Session) Exec(ctx context.Context, st *Statement, args ...any) error {
	_, err := s.exec(ctx, st, args...)
	return err
}

// Change writes, and returns the number of changed rows; a view cannot write.
func (s Session) Change(ctx context.Context, st *Statement, args ...any) (int64, error) {
	if s.tx == nil {
		return 0, ports.ErrReadOnly
	}
	return s.exec(ctx, st, args...)
}

// Write is a change whose number of rows does not matter.
func (s Session) Write(ctx context.Context, st *Statement, args ...any) error {
	_, err := s.Change(ctx, st, args...)
	return err
}

// MustChange is a change of a row that must exist: otherwise it returns missing.
func (s Session) MustChange(ctx context.Context, missing error, st *Statement, args ...any) error {
	n, err := s.Change(ctx, st, args...)
	if err == nil && n == 0 {
		return missing
	}
	return err
}
