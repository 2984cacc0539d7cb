package pgdb

import (
	"context"

	"github.com/pgherd/pgherd/ports"
)

// Rows is a session with a table: what repositories do alike.
type Rows[T any] struct {
	Session
	table *Table[T]
}

// Rows are those of the table, as a session has them.
func (t *Table[T]) Rows(s Session) Rows[T] { return Rows[T]{s, t} }

// Add adds a row, as the table's Added says.
func (r Rows[T]) Add(ctx context.Context, row T) error { return r.table.Add(ctx, r.Session, row) }

// Add adds a row, as Added says.
func (t *Table[T]) Add(ctx context.Context, s Session, row T) error {
	return s.Write(ctx, t.add, t.Values(row)...)
}

// Save changes what the table's Saved names of a row that must exist.
func (r Rows[T]) Save(ctx context.Context, row T) error {
	return r.MustChange(ctx, ports.ErrNoRow, r.table.save, ValuesOf(row, r.table.saved)...)
}

// One is One for a whole row.
func (r Rows[T]) One(ctx context.Context, st *Statement, args ...any) (T, error) {
	return One[T](ctx, r.Session, st, args...)
}

// All is All for whole rows.
func (r Rows[T]) All(ctx context.Context, st *Statement, args ...any) ([]T, error) {
	return All[T](ctx, r.Session, st, args...)
}

// Locked is Locked for a whole row.
func (r Rows[T]) Locked(ctx context.Context, st *Statement, args ...any) (T, error) {
	return Locked[T](ctx, r.Session, st, args...)
}

// Page is PageOf for whole rows.
func (r Rows[T]) Page(
	ctx context.Context, st *Statement, position func(ports.Page) ([]any, error), p ports.Page, args ...any,
) ([]T, error) {
	return PageOf[T](ctx, r.Session, st, position, p, args...)
}
