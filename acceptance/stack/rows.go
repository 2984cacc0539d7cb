package stack

import (
	"context"
	"database/sql"
	"errors"
)

// Querier is a pool of connections or one of them.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Rows is what a query returns as text, with the names of its columns. NULL is the empty text. Without arguments, PgBouncer's
// console understands it too.
func Rows(ctx context.Context, db Querier, query string, args ...any) (names []string, found [][]string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if names, err = rows.Columns(); err != nil {
		return nil, nil, err
	}
	for rows.Next() {
		values, targets := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, nil, err
		}
		row := make([]string, len(names))
		for i, v := range values {
			row[i] = v.String
		}
		found = append(found, row)
	}
	return names, found, rows.Err()
}

// Column is the first one of what a query returns.
func Column(ctx context.Context, db Querier, query string, args ...any) (first []string, err error) {
	_, found, err := Rows(ctx, db, query, args...)
	for _, row := range found {
		first = append(first, row[0])
	}
	return first, err
}
