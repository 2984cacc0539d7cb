package past

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/recovery"
)

// table is one that is rescued, as it was then.
type table struct {
	recovery.Table
	columns []column
	bytes   int64
}

// column is one of them. written is the type as it was then, without the domain; needs is what of the database that takes.
type column struct {
	name, written, shown string
	needs                dataType
}

// dataType is a type that a column is of, or an array of it.
type dataType struct {
	schema, name, kind string
	labels             []string // of an enum
}

var (
	//go:embed then.sql
	queryTree string
	//go:embed columns.sql
	queryColumns string
)

// then finds a table in the database as it was. A *refusal says why it is none that can be rescued.
func then(ctx context.Context, db *sql.DB, i int, of recovery.Table) (t table, err error) {
	t.Table = of
	no := func(format string, args ...any) error {
		return &refusal{command.ReasonInvalid, recovery.TableField(i), of.String() + " " + fmt.Sprintf(format, args...)}
	}
	const query = `SELECT c.oid::bigint, c.relkind::text, c.oid < 16384 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = $2`
	var oid int64
	var kind string
	var own bool
	err = db.QueryRowContext(ctx, query, of.Schema, of.Name).Scan(&oid, &kind, &own)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return t, no("was not there then")
	case err != nil:
		return t, err
	case own:
		return t, no("is PostgreSQL's own")
	case kind != "r" && kind != "p":
		return t, no("was %s then, and only tables have rows of their own", called(kind))
	}
	var foreign, unlogged bool
	if err := db.QueryRowContext(ctx, queryTree, oid).Scan(&foreign, &unlogged, &t.bytes); err != nil {
		return t, err
	}
	if foreign {
		return t, no("had foreign tables below it, whose rows are somewhere else")
	}
	if unlogged {
		return t, no("was unlogged, and the archive has no rows of such tables")
	}
	err = pg.Each(ctx, db, func(rows *sql.Rows) error {
		var c column
		err := rows.Scan(&c.name, &c.written, &c.shown, &c.needs.schema, &c.needs.name, &c.needs.kind, pq.Array(&c.needs.labels))
		t.columns = append(t.columns, c)
		return err
	}, queryColumns, oid)
	return t, err
}

func called(relkind string) string {
	name, known := map[string]string{
		"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "i": "an index", "I": "an index",
		"c": "a type",
	}[relkind]
	if !known {
		return "no table"
	}
	return name
}

// read is the COPY that reads all rows. It is for a login that can do nothing else: to plan a query, PostgreSQL may run functions
// of the customer's.
func (t table) read() string {
	from := dumpsql.QuoteIdentifier(t.Schema) + "." + dumpsql.QuoteIdentifier(t.Name)
	return "COPY (SELECT " + t.list() + " FROM " + from + ") TO STDOUT"
}

func (t table) list() string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = dumpsql.QuoteIdentifier(c.name)
	}
	return strings.Join(names, ", ")
}

// made is the statement that makes the table in a schema. is says which columns are of their type; the others are text.
func (t table) made(schema string, is func(dataType) bool) (statement string, notes []string) {
	lines := make([]string, len(t.columns))
	for i, c := range t.columns {
		written := c.written
		if !is(c.needs) {
			written = "text"
			notes = append(notes, fmt.Sprintf("%s of %s is text: the database has no %s as it was, or none that can be filled as it was",
				dumpsql.QuoteIdentifier(c.name), t, c.shown))
		}
		lines[i] = dumpsql.QuoteIdentifier(c.name) + " " + written
	}
	return "CREATE TABLE " + t.in(schema) + " (" + strings.Join(lines, ", ") + ")", notes
}

func (t table) in(schema string) string {
	return dumpsql.QuoteIdentifier(schema) + "." + dumpsql.QuoteIdentifier(t.Rescued())
}

// referring are PostgreSQL's own types whose values name something else of a database, or cannot be read back at all.
var referring = []string{
	"regclass", "regcollation", "regconfig", "regdictionary", "regnamespace", "regoper", "regoperator", "regproc", "regprocedure",
	"regrole", "regtype", "aclitem", "pg_node_tree", "pg_ndistinct", "pg_dependencies", "pg_mcv_list", "pg_brin_bloom_summary",
	"pg_brin_minmax_multi_summary", "gtsvector",
}

// standing reports whether the database has a type as it was, for its owner. To read a value of any other type back would run
// functions of the customer's, as the checks of domains are, or could fail: of those that customers make, only enums are taken.
// Others that are no composites are made by extensions, as only an administrator can.
func standing(ctx context.Context, q pg.Querier, owner string, t dataType) (bool, error) {
	const own = "pg_catalog"
	switch {
	case t.schema == own:
		return (t.kind == "b" || t.kind == "r" || t.kind == "m") && !slices.Contains(referring, t.name), nil
	case t.kind != "b" && t.kind != "e":
		return false, nil
	}
	const query = `SELECT coalesce(array(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder), '{}')
		FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
		WHERE n.nspname = $1 AND t.typname = $2 AND t.typtype::text = $3 AND t.typelem = 0 AND t.typisdefined
			AND has_type_privilege($4, t.oid, 'USAGE') AND has_schema_privilege($4, n.oid, 'USAGE')`
	var labels []string
	err := q.QueryRowContext(ctx, query, t.schema, t.name, t.kind, owner).Scan(pq.Array(&labels))
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return slices.Equal(labels, t.labels), err
}
