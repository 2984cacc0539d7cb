package artifact

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/pgherd/pgherd/agent/artifact/dumpsql"
	"github.com/pgherd/pgherd/core/backup"
)

//go:embed catalog.sql
var countObjects string

// querier is a connection's pool, or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// each runs a query and calls scan for each of its rows.
func each(ctx context.Context, q querier, what, query string, scan func(*sql.Rows) error) error {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("read %s: %w", what, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

func knownSettings(ctx context.Context, q querier) (map[string]bool, error) {
	known := map[string]bool{}
	err := each(ctx, q, "settings", `SELECT name FROM pg_settings`, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		known[name] = true
		return err
	})
	return known, err
}

// userTables are the tables whose rows a dump holds. An extension's own rows are its script's business.
const userTables = ` FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT EXISTS (
		SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')`

const userSequences = ` FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'S' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT EXISTS (
		SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')`

func tableSizes(ctx context.Context, q querier) (map[string]int64, error) {
	sizes := map[string]int64{}
	const query = `SELECT n.nspname, c.relname, coalesce(pg_table_size(c.oid), 0)` + userTables
	err := each(ctx, q, "table sizes", query, func(rows *sql.Rows) error {
		var schema, name string
		var size int64
		err := rows.Scan(&schema, &name, &size)
		sizes[dumpsql.QuoteName(schema, name)] = size
		return err
	})
	return sizes, err
}

// observe reads what the database holds. counted is told of the tables counted so far, of how many.
func observe(ctx context.Context, q querier, counted func(done, total int)) (c backup.Contents, err error) {
	if c.Locale, err = locale(ctx, q); err != nil {
		return c, err
	}
	if c.Extensions, err = extensions(ctx, q); err != nil {
		return c, err
	}
	if c.Objects, err = objects(ctx, q); err != nil {
		return c, err
	}
	const large = `SELECT count(*) FROM pg_largeobject_metadata`
	if err = q.QueryRowContext(ctx, large).Scan(&c.LargeObjects); err != nil {
		return c, fmt.Errorf("count large objects: %w", err)
	}
	c.Rows, err = rowCounts(ctx, q, counted)
	return c, err
}

// locale is read through jsonb because the columns differ between major versions.
func locale(ctx context.Context, q querier) (l backup.Locale, err error) {
	const query = `SELECT pg_encoding_to_char(encoding), CASE datlocprovider WHEN 'i' THEN 'icu' ELSE 'libc' END,
		datcollate, datctype, coalesce(j->>'daticulocale', j->>'datlocale', ''), coalesce(j->>'daticurules', '')
		FROM pg_database d, to_jsonb(d) j WHERE datname = current_database()`
	err = q.QueryRowContext(ctx, query).Scan(&l.Encoding, &l.Provider, &l.Collate, &l.Ctype, &l.ICULocale, &l.ICURules)
	if err != nil {
		return l, fmt.Errorf("read locale: %w", err)
	}
	return l, nil
}

func extensions(ctx context.Context, q querier) ([]backup.Extension, error) {
	var list []backup.Extension
	const query = `SELECT extname, extversion, nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace ORDER BY 1`
	err := each(ctx, q, "extensions", query, func(rows *sql.Rows) error {
		var e backup.Extension
		err := rows.Scan(&e.Name, &e.Version, &e.Schema)
		list = append(list, e)
		return err
	})
	return list, err
}

func objects(ctx context.Context, q querier) (map[string]int64, error) {
	counts := map[string]int64{}
	err := each(ctx, q, "objects", countObjects, func(rows *sql.Rows) error {
		var kind string
		var n int64
		err := rows.Scan(&kind, &n)
		counts[kind] = n
		return err
	})
	return counts, err
}

// relation is a table or a sequence.
type relation struct{ schema, name string }

func (r relation) sql() string {
	return dumpsql.QuoteIdentifier(r.schema) + "." + dumpsql.QuoteIdentifier(r.name)
}

func relations(ctx context.Context, q querier, from string) ([]relation, error) {
	var list []relation
	err := each(ctx, q, "relations", `SELECT n.nspname, c.relname`+from+` ORDER BY 1, 2`, func(rows *sql.Rows) error {
		var r relation
		err := rows.Scan(&r.schema, &r.name)
		list = append(list, r)
		return err
	})
	return list, err
}

// rowCounts counts the rows of each table itself. ONLY keeps children out, and a count of a table runs no customer's code.
func rowCounts(ctx context.Context, q querier, counted func(done, total int)) (map[string]int64, error) {
	tables, err := relations(ctx, q, userTables)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int64, len(tables))
	for i, t := range tables {
		var n int64
		if err := q.QueryRowContext(ctx, `SELECT count(*) FROM ONLY `+t.sql()).Scan(&n); err != nil {
			return nil, fmt.Errorf("count rows of %s: %w", t.sql(), err)
		}
		counts[dumpsql.QuoteName(t.schema, t.name)] = n
		counted(i+1, len(tables))
	}
	return counts, nil
}

// sequencePositions reads where each sequence stands.
func sequencePositions(ctx context.Context, q querier) (map[string]backup.Value, error) {
	sequences, err := relations(ctx, q, userSequences)
	if err != nil {
		return nil, err
	}
	values := make(map[string]backup.Value, len(sequences))
	for _, s := range sequences {
		var v backup.Value
		if err := q.QueryRowContext(ctx, `SELECT last_value, is_called FROM `+s.sql()).Scan(&v.Last, &v.Called); err != nil {
			return nil, fmt.Errorf("read sequence %s: %w", s.sql(), err)
		}
		values[dumpsql.QuoteName(s.schema, s.name)] = v
	}
	return values, nil
}
