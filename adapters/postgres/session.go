package postgres

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/pgherd/pgherd/ports"
)

// session runs statements: in a transaction, or each by itself where tx is nil.
type session struct {
	store *Store
	set   *prepared
	tx    *sqlx.Tx
}

// run calls fn with the statement, as prepared on the connection that it runs on.
func (s session) run(ctx context.Context, st *statement, fn func(context.Context, *sqlx.Stmt) error) error {
	translated := translate
	if st.deletes() {
		translated = translateDelete
	}
	if s.tx == nil {
		return s.store.again(ctx, func(ctx context.Context) error { return translated(ctx, s.store.outside(ctx, st, fn)) })
	}
	if ctx.Err() != nil {
		return translate(ctx, ctx.Err())
	}
	if stmt := s.set.of(st); stmt != nil {
		return translated(ctx, fn(ctx, s.tx.StmtxContext(ctx, stmt)))
	}
	return translated(ctx, once(ctx, s.tx, st, fn))
}

// outside calls fn with the statement, in no transaction.
func (s *Store) outside(ctx context.Context, st *statement, fn func(context.Context, *sqlx.Stmt) error) error {
	if stmt := s.current.Load().of(st); stmt != nil {
		return fn(ctx, stmt)
	}
	return once(ctx, s.db, st, fn)
}

// once prepares a statement for this time only, where the Store is opened with Config.Brief.
func once(
	ctx context.Context, on sqlx.PreparerContext, st *statement, fn func(context.Context, *sqlx.Stmt) error,
) error {
	stmt, err := sqlx.PreparexContext(ctx, on, st.text())
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }() // what it leaves ends with the connection
	return fn(ctx, stmt)
}

// one reads one row; ErrNoRow when there is none.
func one[T any](ctx context.Context, s session, st *statement, args ...any) (T, error) {
	var row, none T
	err := s.run(ctx, st, func(ctx context.Context, stmt *sqlx.Stmt) error { return stmt.GetContext(ctx, &row, args...) })
	if err != nil {
		return none, err // scanning may have set its pointers
	}
	return row, nil
}

// all reads every row.
func all[T any](ctx context.Context, s session, st *statement, args ...any) ([]T, error) {
	var rows []T
	err := s.run(ctx, st, func(ctx context.Context, stmt *sqlx.Stmt) error {
		rows = rows[:0]
		return stmt.SelectContext(ctx, &rows, args...)
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// locked reads or changes one row and locks it until the transaction ends; a view cannot lock.
func locked[T any](ctx context.Context, s session, st *statement, args ...any) (T, error) {
	if s.tx == nil {
		var none T
		return none, ports.ErrReadOnly
	}
	return one[T](ctx, s, st, args...)
}

// change writes, and returns the number of changed rows.
func (s session) change(ctx context.Context, st *statement, args ...any) (int64, error) {
	if s.tx == nil {
		return 0, ports.ErrReadOnly
	}
	var changed int64
	err := s.run(ctx, st, func(ctx context.Context, stmt *sqlx.Stmt) error {
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

// write is a change whose number of rows does not matter.
func (s session) write(ctx context.Context, st *statement, args ...any) error {
	_, err := s.change(ctx, st, args...)
	return err
}

// mustChange is a change of a row that must exist: otherwise it returns missing.
func (s session) mustChange(ctx context.Context, missing error, st *statement, args ...any) error {
	n, err := s.change(ctx, st, args...)
	if err == nil && n == 0 {
		return missing
	}
	return err
}
