package pgdb

import (
	"context"
	"fmt"
	"strings"
	"sync"

	sq "github.com/Masterminds/squirrel"
	"github.com/jmoiron/sqlx"
)

// Statement is an SQL text that is built once. A DB prepares all of them when it is opened: later, preparing might wait for a
// connection that a transaction holds. One for a brief use prepares each where it runs, on the transaction's own connection.
type Statement struct {
	number int
	text   func() string
}

// Text is its SQL.
func (s *Statement) Text() string { return s.text() }

// deletes reports whether the statement is one that deletes rows.
func (s *Statement) deletes() bool { return strings.Contains(s.text(), "DELETE FROM") }

// Statements are all that are registered.
var Statements []*Statement

// prepared holds the prepared statements of a DB by number; none where it is for a brief use.
type prepared []*sqlx.Stmt

func (p *prepared) of(s *Statement) *sqlx.Stmt {
	if len(*p) == 0 {
		return nil
	}
	return (*p)[s.number]
}

// Dollar begins a statement that is built.
var Dollar = sq.StatementBuilder.PlaceholderFormat(sq.Dollar)

// Define registers a statement. Its arguments are bound when it runs; those of the builder are placeholders.
func Define(q sq.Sqlizer) *Statement {
	s := &Statement{number: len(Statements)}
	s.text = sync.OnceValue(func() string {
		text, _, err := q.ToSql()
		if err != nil {
			panic(fmt.Sprintf("postgres: statement %d cannot be built: %v", s.number, err))
		}
		return text
	})
	Statements = append(Statements, s)
	return s
}

// Written registers a statement that is clearer as plain SQL.
func Written(text string) *Statement {
	s := &Statement{number: len(Statements), text: func() string { return text }}
	Statements = append(Statements, s)
	return s
}

// prepare prepares every statement, unless another goroutine has done so since old was current. Statements in use stay valid:
// the old ones are closed with the DB.
func (d *DB) prepare(ctx context.Context, old *prepared) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current.Load() != old {
		return nil
	}
	set := make(prepared, len(Statements))
	for i, statement := range Statements {
		stmt, err := d.pool.PreparexContext(ctx, statement.text()) //nolint:sqlclosecheck // it ends with the pool
		if err != nil {
			return fmt.Errorf("preparing %q: %w", statement.text(), err)
		}
		set[i] = stmt
	}
	if old != nil {
		d.retired = append(d.retired, old)
	}
	d.current.Store(&set)
	return nil
}
