// Package pg has what parts of the agent share to talk to PostgreSQL.
package pg

import (
	"context"
	"database/sql"
)

// Querier is a pool, one connection of it, or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
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
