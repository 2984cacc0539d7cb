// Package pg has what parts of the agent share to talk to PostgreSQL.
package pg

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/lib/pq"
)

// Querier is a pool, one connection of it, or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// One runs a query of one value.
func One[T any](ctx context.Context, q Querier, query string, args ...any) (value T, err error) {
	err = q.QueryRowContext(ctx, query, args...).Scan(&value)
	return value, err
}

// Each runs a query and calls scan for each of its rows, until one fails.
func Each(ctx context.Context, q Querier, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// InTheWay reports whether another transaction prevented a change: by a lock that was not waited for any longer, or by a change
// of its own.
func InTheWay(err error) bool {
	const (
		lockNotAvailable, deadlock, serialization = "55P03", "40P01", "40001"
		internal                                  = "XX000" // "tuple concurrently updated" among others
	)
	return pq.As(err, lockNotAvailable, deadlock, serialization) != nil ||
		pq.As(err, internal) != nil && strings.Contains(err.Error(), "concurrently")
}

// Column runs a query of one column of text.
func Column(ctx context.Context, q Querier, query string, args ...any) (list []string, err error) {
	err = Each(ctx, q, func(rows *sql.Rows) error {
		var value string
		err := rows.Scan(&value)
		list = append(list, value)
		return err
	}, query, args...)
	return list, err
}

// InTransaction runs statements in one transaction: all of them or none.
func InTransaction(ctx context.Context, db *sql.DB, statements ...string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing to do after the commit
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Read is Each with errors that say what was read.
func Read(ctx context.Context, q Querier, what, query string, scan func(*sql.Rows) error) error {
	if err := Each(ctx, q, scan, query); err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}
