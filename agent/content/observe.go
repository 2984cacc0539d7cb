// Package content reads what a database holds, as the manifest of a backup describes it.
package content

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/backup"
)

//go:embed objects.sql
var listObjects string

// KnownSettings are those that the server knows.
func KnownSettings(ctx context.Context, q pg.Querier) (map[string]bool, error) {
	known := map[string]bool{}
	err := pg.Read(ctx, q, "settings", `SELECT name FROM pg_settings`, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		known[name] = true
		return err
	})
	return known, err
}

// userTables are the tables whose rows a dump contains. Rows in an extension's tables are created by its script.
const userTables = ` FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT EXISTS (
		SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')`

const allSequences = `SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'S' AND c.oid >= 16384 AND n.nspname !~ '^pg_(temp|toast)'`

const membersOnly = ` AND EXISTS (
	SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')`

// TableSizes are those of the tables whose rows a dump contains, by their quoted names.
func TableSizes(ctx context.Context, q pg.Querier) (map[string]int64, error) {
	return numbers(ctx, q, "table sizes", `coalesce(pg_table_size(c.oid), 0)`)
}

// numbers are what an expression says of each of the tables whose rows a dump contains, by their quoted names.
func numbers(ctx context.Context, q pg.Querier, what, expression string) (map[string]int64, error) {
	all := map[string]int64{}
	err := pg.Read(ctx, q, what, `SELECT n.nspname, c.relname, `+expression+userTables, func(rows *sql.Rows) error {
		var schema, name string
		var n int64
		err := rows.Scan(&schema, &name, &n)
		all[dumpsql.QuoteName(schema, name)] = n
		return err
	})
	return all, err
}

const countLargeObjects = `SELECT count(*) FROM pg_largeobject_metadata`

// Observe reads from the catalogs what the database holds, all but its rows.
func Observe(ctx context.Context, q pg.Querier) (c backup.Contents, err error) {
	if c.Locale, err = Locale(ctx, q); err != nil {
		return c, err
	}
	if c.Extensions, err = extensions(ctx, q); err != nil {
		return c, err
	}
	if c.Objects, err = objects(ctx, q); err != nil {
		return c, err
	}
	if err = q.QueryRowContext(ctx, countLargeObjects).Scan(&c.LargeObjects); err != nil {
		return c, fmt.Errorf("count large objects: %w", err)
	}
	return c, nil
}

// Locale is that of the database of the connection.
func Locale(ctx context.Context, q pg.Querier) (backup.Locale, error) { return LocaleOf(ctx, q, "") }

// LocaleOf is that of a database; empty: of the connection's. It is read through jsonb because the columns differ between major
// versions.
func LocaleOf(ctx context.Context, q pg.Querier, database string) (l backup.Locale, err error) {
	const query = `SELECT pg_encoding_to_char(encoding),
		CASE datlocprovider WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' ELSE 'libc' END,
		datcollate, datctype, coalesce(j->>'daticulocale', j->>'datlocale', ''), coalesce(j->>'daticurules', '')
		FROM pg_database d, to_jsonb(d) j WHERE datname = coalesce(nullif($1, ''), current_database())`
	err = q.QueryRowContext(ctx, query, database).Scan(&l.Encoding, &l.Provider, &l.Collate, &l.Ctype, &l.ICULocale, &l.ICURules)
	if err != nil {
		return l, fmt.Errorf("read locale: %w", err)
	}
	return l, nil
}

func extensions(ctx context.Context, q pg.Querier) ([]backup.Extension, error) {
	var list []backup.Extension
	const query = `SELECT extname, extversion, nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace ORDER BY 1`
	err := pg.Read(ctx, q, "extensions", query, func(rows *sql.Rows) error {
		var e backup.Extension
		err := rows.Scan(&e.Name, &e.Version, &e.Schema)
		list = append(list, e)
		return err
	})
	return list, err
}

func objects(ctx context.Context, q pg.Querier) (backup.Objects, error) {
	p := backup.NewPacker()
	err := ReadWithin(ctx, q, "the names of its objects", backup.MaxObjectsBytes, listObjects, func(rows *sql.Rows) (int, error) {
		var o backup.Object
		if err := rows.Scan(&o.Kind, &o.Name, &o.Relation, &o.Extension, &o.What); err != nil {
			return 0, err
		}
		return p.Add(o)
	})
	if err != nil {
		return nil, err
	}
	return p.Objects()
}

// Sequences reads the position of each sequence.
func Sequences(ctx context.Context, q pg.Querier) (map[string]backup.Value, error) {
	return sequences(ctx, q, allSequences)
}

// ExtensionSequences reads the position of each sequence that belongs to an extension.
func ExtensionSequences(ctx context.Context, q pg.Querier) (map[string]backup.Value, error) {
	return sequences(ctx, q, allSequences+membersOnly)
}

func sequences(ctx context.Context, q pg.Querier, query string) (map[string]backup.Value, error) {
	var list []Table
	err := pg.Read(ctx, q, "sequences", query, func(rows *sql.Rows) error {
		var s Table
		err := rows.Scan(&s.schema, &s.name)
		list = append(list, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	values := make(map[string]backup.Value, len(list))
	for _, s := range list {
		var v backup.Value
		if err := q.QueryRowContext(ctx, `SELECT last_value, is_called FROM `+s.sql()).Scan(&v.Last, &v.Called); err != nil {
			return nil, fmt.Errorf("read sequence %s: %w", s.sql(), err)
		}
		values[s.quoted()] = v
	}
	return values, nil
}
