package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"

	sq "github.com/Masterminds/squirrel"
	"github.com/jmoiron/sqlx"
)

// statement is an SQL text that is built once. A Store prepares all of them when it is opened: later, preparing might wait for a
// connection that a transaction holds. One for a brief use prepares each where it runs, on the transaction's own connection.
type statement struct {
	number int
	text   func() string
}

// deletes reports whether the statement is one that deletes rows.
func (s *statement) deletes() bool { return strings.Contains(s.text(), "DELETE FROM") }

var statements []*statement

// prepared holds the prepared statements of a Store by number; none where it is for a brief use.
type prepared []*sqlx.Stmt

func (p *prepared) of(s *statement) *sqlx.Stmt {
	if len(*p) == 0 {
		return nil
	}
	return (*p)[s.number]
}

var dollar = sq.StatementBuilder.PlaceholderFormat(sq.Dollar)

// define registers a statement. Its arguments are bound when it runs; those of the builder are placeholders.
func define(q sq.Sqlizer) *statement {
	s := &statement{number: len(statements)}
	s.text = sync.OnceValue(func() string {
		text, _, err := q.ToSql()
		if err != nil {
			panic(fmt.Sprintf("postgres: statement %d cannot be built: %v", s.number, err))
		}
		return text
	})
	statements = append(statements, s)
	return s
}

// written registers a statement that is clearer as plain SQL.
func written(text string) *statement {
	s := &statement{number: len(statements), text: func() string { return text }}
	statements = append(statements, s)
	return s
}

// prepare prepares every statement, unless another goroutine has done so since old was current. Statements in use stay valid:
// the old ones are closed with the Store.
func (s *Store) prepare(ctx context.Context, old *prepared) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Load() != old {
		return nil
	}
	set := make(prepared, len(statements))
	for i, statement := range statements {
		stmt, err := s.db.PreparexContext(ctx, statement.text()) //nolint:sqlclosecheck // it ends with the pool
		if err != nil {
			return fmt.Errorf("preparing %q: %w", statement.text(), err)
		}
		set[i] = stmt
	}
	if old != nil {
		s.retired = append(s.retired, old)
	}
	s.current.Store(&set)
	return nil
}
